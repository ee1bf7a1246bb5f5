"""Warnings of a request: once each, as headers, within the limits of kube-apiserver."""

import asyncio

from aliquot.server.http import warnings


def _sent(*texts: str) -> list[str]:
    async def run() -> list[str]:
        warnings.begin()
        for text in texts:
            warnings.warn(text)
        return warnings.headers()

    return asyncio.run(run())


def test_each_text_is_sent_once_in_order() -> None:
    assert _sent("b", "a", "b") == ['299 - "b"', '299 - "a"']


def test_quotes_are_escaped_and_other_scripts_kept() -> None:
    assert _sent('say "hi" \\ grüß') == ['299 - "say \\"hi\\" \\\\ grüß"']


def test_what_a_header_cannot_hold_is_left_out() -> None:
    assert _sent("", "two\nlines", "good") == ['299 - "good"']


def test_long_texts_are_cut_only_if_all_together_are_too_long() -> None:
    assert _sent("x" * 4096) == [f'299 - "{"x" * 4096}"']
    sent = _sent(*(f"{index:03}{'x' * 400}" for index in range(30)))
    assert len(sent) == 16
    assert {len(each) for each in sent} == {len('299 - ""') + 256}


def test_outside_a_request_a_warning_is_dropped() -> None:
    async def run() -> list[str]:
        warnings.warn("lost")
        return warnings.headers()

    assert asyncio.run(run()) == []
