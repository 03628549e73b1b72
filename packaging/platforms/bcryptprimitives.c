/* A stand-in for a library that wine 8 lacks and Rust's standard library needs: randomness from the
   function that older programs use. For tests under wine only; Windows has its own. */

int __stdcall SystemFunction036(void *buffer, unsigned long length);

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *buffer, unsigned long long length) {
    while (length > 0) {
        unsigned long part = length > 0x10000 ? 0x10000 : (unsigned long)length;
        if (!SystemFunction036(buffer, part)) return 0;
        buffer += part;
        length -= part;
    }
    return 1;
}
