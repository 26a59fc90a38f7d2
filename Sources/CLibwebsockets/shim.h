#ifndef KIZUNA_CLIBWEBSOCKETS_SHIM_H
#define KIZUNA_CLIBWEBSOCKETS_SHIM_H

#include <libwebsockets.h>
#include <openssl/hmac.h>
#include <openssl/evp.h>

// LWS_PRE is a macro too complex for Swift to import.
static inline size_t kd_lws_pre(void) { return LWS_PRE; }

#endif
