/* jni.h asks for the C library's <stdio.h> but needs nothing of it; this library has no C library. */
