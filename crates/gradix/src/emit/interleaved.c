/* Where an element lies whose neighbours are some elements apart. */
GX_WHOLE gx_interleaved(int64_t i, int64_t apart, int64_t beside) {
    return i % apart * beside + i / apart % beside + i / (apart * beside) * (apart * beside);
}
