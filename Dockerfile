# The image that `aliquot manifests` and the Helm chart run: docker build -t aliquot:0.1.0 .
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
RUN python -m venv /opt/aliquot
WORKDIR /src
COPY requirements.lock ./
RUN /opt/aliquot/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY aliquot ./aliquot
# What only builds the package, and pip itself, have no business where it runs.
RUN /opt/aliquot/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/aliquot/bin/pip uninstall --yes \
        editables hatchling packaging pathspec pluggy tomlkit trove-classifiers pip

FROM python:${PYTHON}-slim
COPY --from=build /opt/aliquot /opt/aliquot
ENV PATH=/opt/aliquot/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /tmp
EXPOSE 8080 9443
ENTRYPOINT ["aliquot"]
