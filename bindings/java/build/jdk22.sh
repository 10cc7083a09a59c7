#!/usr/bin/env bash
# Prints the home of the newest JDK here that has java.lang.foreign: 22 or later. JAVA22_HOME may name one; nothing is printed
# when there is none.
set -euo pipefail

# What its file `release` says, such as 25; 0 where there is no JDK.
major_of() {
    [[ -x $1/bin/javac && -r $1/release ]] || { echo 0; return; }
    sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release"
}

candidates() {
    printf '%s\n' "${JAVA_HOME:-}" /usr/lib/jvm/* /opt/java/* "$HOME"/.sdkman/candidates/java/* \
        /Library/Java/JavaVirtualMachines/*/Contents/Home
    sed -n 's:.*<jdkHome>\(.*\)</jdkHome>.*:\1:p' "$HOME/.m2/toolchains.xml" 2>/dev/null || true
}

if [[ -n ${JAVA22_HOME:-} ]]; then
    [[ $(major_of "$JAVA22_HOME") -ge 22 ]] || { echo "JAVA22_HOME names $JAVA22_HOME, which is no JDK 22 or later" >&2; exit 1; }
    echo "$JAVA22_HOME"
    exit
fi
best='' best_major=21
while read -r home; do
    major=$(major_of "$home")
    if ((${major:-0} > best_major)); then best=$home best_major=$major; fi
done < <(candidates)
echo "$best"
