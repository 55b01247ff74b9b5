/** Where a connection of the proxy goes. */

/** As a socket wants it: an address of IPv6 without brackets. */
export const connectHost = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')
