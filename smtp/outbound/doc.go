// Package outbound is the SMTP client. It finds the servers of a domain (MX, RFC
// 5321 section 5), applies its TLS policy (MTA-STS, RFC 8461), opens and keeps
// connections, and runs transactions.
package outbound
