#ifndef KIZUNA_CLIBWEBSOCKETS_SHIM_H
#define KIZUNA_CLIBWEBSOCKETS_SHIM_H

#include <libwebsockets.h>
#include <openssl/hmac.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

// Macros that Swift does not import.
static inline size_t kd_lws_pre(void) { return LWS_PRE; }
static inline int kd_ssl_ctx_require_tls12(SSL_CTX *ctx) { return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION); }
static inline long kd_ssl_ctx_set_modes(SSL_CTX *ctx) {
  return SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
}
static inline int kd_ssl_is_alert(int type) { return (type & SSL_CB_ALERT) != 0; }

#endif
