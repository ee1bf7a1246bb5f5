"""Protobuf, where it holds what JSON holds: the managers of an object."""

from aliquot.server.schema.protobuf import from_protobuf


def part(number: int, content: bytes | str) -> bytes:
    written = content.encode() if isinstance(content, str) else content
    assert len(written) < 128
    key = number << 3 | 2
    head = bytes((key,)) if key < 128 else bytes((key & 127 | 128, key >> 7))
    return head + bytes((len(written),)) + written


def test_managers_keep_their_fields() -> None:
    fields = part(1, '{"f:data":{"f:a":{}}}')
    names = part(1, "m") + part(2, "Update") + part(3, "v1")
    entry = names + part(6, "FieldsV1") + part(7, fields)
    body = part(1, part(1, "c") + part(17, entry))
    about = part(1, "v1") + part(2, "ConfigMap")
    read = from_protobuf(b"k8s\x00" + part(1, about) + part(2, body))
    assert read["metadata"]["managedFields"] == [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]
