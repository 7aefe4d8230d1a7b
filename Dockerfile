# silvan with OpenSM and infiniband-diags: docker build -t silvan . && docker run --rm -it silvan
FROM rust:1-bookworm AS build
ARG PROFILE=dist
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python3 -m venv /opt/silvan \
    && /opt/silvan/bin/pip install --no-cache-dir --require-hashes --requirement requirements/run.txt \
    && PATH="/opt/silvan/bin:$PATH" maturin build --profile "$PROFILE" --locked --strip --out /wheels \
    && /opt/silvan/bin/pip install --no-cache-dir --no-deps /wheels/silvan-*.whl \
    && /opt/silvan/bin/pip uninstall --yes maturin

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        python3 opensm infiniband-diags ibsim-utils ibverbs-utils perftest \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home silvan
COPY --from=build /opt/silvan /opt/silvan
ENV PATH="/opt/silvan/bin:/usr/sbin:$PATH"
USER silvan
WORKDIR /home/silvan
ENTRYPOINT ["silvan"]
CMD ["--help"]
