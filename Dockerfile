# The demo without a screen, as a web page with pictures and an animation:
#   docker build -t palpo .
#   docker run --rm -v "$PWD/out:/out" palpo        then open out/report.html
# Any other command as well: docker run --rm palpo scenes
FROM python:3.13-slim
WORKDIR /palpo
COPY . .
RUN sh scripts/system-libs.sh && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir -c constraints.txt '.[render]'
# Compiled here once, not in each run.
RUN palpo compile multirate
VOLUME /out
ENTRYPOINT ["palpo"]
CMD ["demo", "--headless", "--report", "/out"]
