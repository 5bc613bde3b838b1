#!/bin/bash
sysctl -w net.core.somaxconn=1024
