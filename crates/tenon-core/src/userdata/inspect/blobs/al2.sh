#!/bin/bash
set -ex
yum install -y amazon-ssm-agent
B64_CLUSTER_CA=LS0tLS1CRUdJTg==
API_SERVER_URL=https://abc.gr7.us-west-2.eks.amazonaws.com
K8S_CLUSTER_DNS_IP=10.100.0.10
/etc/eks/bootstrap.sh my-cluster --kubelet-extra-args '--node-labels=team=web --register-with-taints=special=true:NoSchedule --max-pods=17' --b64-cluster-ca $B64_CLUSTER_CA --apiserver-endpoint $API_SERVER_URL --dns-cluster-ip $K8S_CLUSTER_DNS_IP --use-max-pods false
systemctl enable --now amazon-ssm-agent
