# The two commands on a fresh Debian 12:  docker build -t zipccl .
FROM debian:12
COPY . /zipccl
WORKDIR /zipccl
RUN experiments/quickstart.sh
RUN experiments/test.sh
