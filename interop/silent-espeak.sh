#!/bin/sh
# A stand-in for espeak-ng: one voice, whose sound is one silent sample.
if [ "$1" = --voices ]; then
    echo 'Pty Language       Age/Gender VoiceName          File          Other Languages'
    echo ' 5  en             --/M      Silent_Sam         none/en'
else
    cat >/dev/null
    printf 'RIFF----WAVEfmt --------------------data----\0\0'
fi
