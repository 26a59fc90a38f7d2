#ifndef KIZUNA_CCURL_SHIM_H
#define KIZUNA_CCURL_SHIM_H

#include <curl/curl.h>

// curl_easy_setopt and friends are variadic; Swift needs one function per argument type.
static inline CURLcode kd_curl_setopt_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode kd_curl_setopt_off(CURL *handle, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode kd_curl_setopt_string(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode kd_curl_setopt_pointer(CURL *handle, CURLoption option, void *value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode kd_curl_setopt_slist(CURL *handle, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(handle, option, value);
}
typedef size_t (*kd_curl_data_callback)(char *bytes, size_t size, size_t count, void *context);
static inline CURLcode kd_curl_setopt_data_callback(CURL *handle, CURLoption option, kd_curl_data_callback value) {
  return curl_easy_setopt(handle, option, value);
}
typedef int (*kd_curl_socket_callback)(void *context, curl_socket_t socket, curlsocktype purpose);
static inline CURLcode kd_curl_setopt_socket_callback(CURL *handle, CURLoption option, kd_curl_socket_callback value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode kd_curl_getinfo_long(CURL *handle, CURLINFO info, long *value) {
  return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode kd_curl_getinfo_off(CURL *handle, CURLINFO info, curl_off_t *value) {
  return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode kd_curl_getinfo_string(CURL *handle, CURLINFO info, char **value) {
  return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode kd_curl_getinfo_pointer(CURL *handle, CURLINFO info, void **value) {
  return curl_easy_getinfo(handle, info, value);
}
static inline CURLMcode kd_curl_multi_setopt_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

#endif
