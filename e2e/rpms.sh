#!/bin/sh
# Makes a repository of tiny packages, in a root that has rpm, createrepo_c and gpg:
#   e2e/rpms.sh DIRECTORY KEY VERSION NAME...
# Each package has one file, and a script that tries what a build must not let it do. The packages
# are signed with a key of this name, made where it is missing; its public half and its fingerprint
# lie beside the packages. A name `A+B` is package A that requires B, and all require `lab-shell`, since
# scripts need a shell and the root's own is not rpm's.
set -eu
directory=$1 key=$2 version=$3
shift 3
export GNUPGHOME=/root/gnupg
mkdir -p -m 0700 "$GNUPGHOME"
mkdir -p "$directory"
gpg --quiet --list-keys "$key" >/dev/null 2>&1 ||
    gpg --quiet --batch --passphrase '' --quick-generate-key "$key" rsa2048 sign never
gpg --quiet --armor --export --export-options export-minimal "$key" >"$directory/key.asc"
gpg --list-keys --with-colons "$key" | sed -n 's/^fpr:::::::::\([0-9A-F]*\):$/\1/p' | head -n 1 \
    >"$directory/fingerprint"

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
spec=$work/lab.spec
cat >"$spec" <<EOF
Name: lab
Version: $version
Release: 1.amzn2023
Summary: lab
License: none
BuildArch: noarch
%description
lab
%package -n lab-shell
Summary: lab
Provides: /bin/sh
%description -n lab-shell
lab
%files -n lab-shell
%install
mkdir -p %{buildroot}/usr/share/lab
EOF
for name; do
    package=${name%%+*}
    requires=${name#"$package"}
    echo "echo $version >%{buildroot}/usr/share/lab/$package" >>"$work/install"
    cat >>"$work/packages" <<EOF
%package -n $package
Summary: stands for $package
${requires:+Requires: ${requires#+}}
%description -n $package
lab
%files -n $package
/usr/share/lab/$package
%post -n $package
exec >>/var/log/lab-scripts 2>&1
echo "begin $package $version"
(echo 77 >/proc/sys/kernel/panic) && echo "reached the kernel: $package"
(echo 77 >/sys/kernel/profiling) && echo "reached the kernel: $package"
systemctl start $package.service
[ "\$(systemctl is-active $package.service)" != active ] || echo "reached the manager: $package"
curl --silent --max-time 2 http://127.0.0.1:8000/ && echo "reached the network: $package"
while [ -e /etc/lab-slow-$package ]; do sleep 0.1; done
echo "end $package $version"
EOF
done
cat "$work/install" "$work/packages" >>"$spec"
rpmbuild --quiet --define "_topdir $work/build" --define "_rpmdir $work/rpm" -bb "$spec" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
rpmsign --define "_gpg_name $key" --define "__gpg /usr/bin/gpg" --addsign "$work"/rpm/noarch/*.rpm >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
cp "$work"/rpm/noarch/*.rpm "$directory"
createrepo_c --quiet "$directory"
