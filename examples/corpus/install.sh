# Dolma, the toolkit of the Allen Institute for AI for training corpora: its package without those that it needs, because
# the example uses only its compiled deduplication.
once_done dolma-1.2.1 || {
    rm -rf "$PEERS/dolma"
    pip install --no-deps --only-binary :all: --target "$PEERS/dolma" dolma==1.2.1
    once_mark dolma-1.2.1
}
