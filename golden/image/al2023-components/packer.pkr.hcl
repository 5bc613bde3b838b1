packer {
  required_plugins {
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = ">= 1.3.0"
    }
  }
}

variable "ami_name" {
  type        = string
  default     = "al2023-components-1.34.2"
  description = "Name of the image; the time is added"
}

variable "associate_public_ip" {
  type        = bool
  default     = false
  description = "Whether the build machine has a public address"
}

variable "encrypt" {
  type        = bool
  default     = true
  description = "Whether the root volume is encrypted"
}

variable "instance_type" {
  type        = string
  default     = "m7g.large"
  description = "Type of the build machine"
}

variable "kms_key_id" {
  type        = string
  default     = ""
  description = "Key of the encryption; empty means the account's own"
}

variable "plan_file" {
  type        = string
  default     = "plan.json"
  description = "What `tenon image plan --output json` printed"
}

variable "poll_attempts" {
  type        = number
  default     = 120
  description = "How often a copy is asked for before it is given up"
}

variable "poll_delay" {
  type        = number
  default     = 30
  description = "Seconds between two questions"
}

variable "region" {
  type        = string
  default     = "us-east-1"
  description = "Region of the build"
}

variable "security_group_id" {
  type        = string
  default     = ""
  description = "Security group; empty means one made for the build"
}

variable "source_ami_name" {
  type        = string
  default     = "al2023-ami-minimal-2023.*-arm64"
  description = "Name of the image to start from; the newest is taken"
}

variable "source_ami_owner" {
  type        = string
  default     = "amazon"
  description = "Who publishes that image"
}

variable "ssh_username" {
  type        = string
  default     = "ec2-user"
  description = "User of that image"
}

variable "subnet_id" {
  type        = string
  default     = ""
  description = "Subnet; empty means the default one"
}

variable "tenon_binary" {
  type        = string
  default     = "tenon"
  description = "Static binary of Tenon for the build machine"
}

variable "volume_size" {
  type        = number
  default     = 20
  description = "Size of the root volume in GiB"
}

variable "volume_type" {
  type        = string
  default     = "gp3"
  description = "Type of the root volume"
}

source "amazon-ebs" "node" {
  ami_description = "Kubernetes 1.34.2 node, al2023"
  ami_name = "${var.ami_name}-{{timestamp}}"
  associate_public_ip_address = var.associate_public_ip
  aws_polling {
    delay_seconds = var.poll_delay
    max_attempts = var.poll_attempts
  }
  imds_support = "v2.0"
  instance_type = var.instance_type
  launch_block_device_mappings {
    delete_on_termination = true
    device_name = "/dev/xvda"
    encrypted = var.encrypt
    kms_key_id = var.kms_key_id
    volume_size = var.volume_size
    volume_type = var.volume_type
  }
  metadata_options {
    http_endpoint = "enabled"
    http_put_response_hop_limit = 1
    http_tokens = "required"
  }
  region = var.region
  security_group_id = var.security_group_id
  source_ami_filter {
    filters = {
      "architecture" = "arm64"
      "name" = var.source_ami_name
      "root-device-type" = "ebs"
      "virtualization-type" = "hvm"
    }
    most_recent = true
    owners = [var.source_ami_owner]
  }
  ssh_username = var.ssh_username
  subnet_id = var.subnet_id
  tags = {
    "tenon-kubernetes" = "1.34.2"
    "tenon-plan" = "f8009248c09e5aed"
    "tenon-profiles" = "base"
  }
}

build {
  sources = ["source.amazon-ebs.node"]

  provisioner "file" {
    destination = "/tmp/tenon"
    source = var.tenon_binary
  }

  provisioner "file" {
    destination = "/tmp/plan.json"
    source = var.plan_file
  }

  provisioner "shell" {
    inline = [
      "sudo install -m 0755 /tmp/tenon /usr/bin/tenon",
      "sudo /usr/bin/tenon image fetch --plan /tmp/plan.json --root / --cache /var/tmp/tenon-cache",
      "sudo /usr/bin/tenon image apply --plan /tmp/plan.json --root / --cache /var/tmp/tenon-cache --offline",
      "sudo /usr/bin/tenon image verify --root /",
      "sudo /usr/bin/tenon image manifest --root / --sbom spdx --cache /var/tmp/tenon-cache --source-image ${build.SourceAMI} > /dev/null",
      "sudo rm -rf /var/tmp/tenon-cache /tmp/tenon /tmp/plan.json",
    ]
  }

  provisioner "file" {
    destination = "manifest.json"
    direction = "download"
    source = "/usr/lib/tenon/image/manifest.json"
  }

  provisioner "file" {
    destination = "sbom.spdx.json"
    direction = "download"
    source = "/usr/lib/tenon/image/sbom.spdx.json"
  }

  provisioner "shell" {
    inline = ["sudo /usr/bin/tenon image seal --root /"]
  }

  post-processor "manifest" {
    output = "packer-manifest.json"
  }
}
