# docker build -t facepairs .
# docker run --rm -v "$PWD/photos:/photos:ro" facepairs verify a.jpg b.jpg
# docker run --rm -p 127.0.0.1:8756:8756 -e FACEPAIRS_TOKEN facepairs serve --host 0.0.0.0
FROM python:3.13-slim AS build
COPY . /src
RUN pip wheel --quiet --no-deps --wheel-dir /wheels /src
RUN python -m venv /opt/facepairs
RUN /opt/facepairs/bin/pip install --quiet "$(echo /wheels/facepairs-*.whl)[serve,postgres,heif]"

FROM python:3.13-slim
COPY --from=build /opt/facepairs /opt/facepairs
RUN useradd --create-home --uid 1000 facepairs
ENV PATH=/opt/facepairs/bin:$PATH
USER facepairs
WORKDIR /photos
EXPOSE 8756
ENTRYPOINT ["facepairs"]
CMD ["--help"]
