"""From machine code bytes to callable addresses: executable memory, and the kernel cache in memory and on disk."""
