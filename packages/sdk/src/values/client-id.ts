declare const brand: unique symbol

/**
 * The opaque identity of a client. Only the daemon mints one, for each connection or for each sender of a channel; tools get it in
 * their context and cannot make one (docs/contract.md#isolation). Compare it with `===` or use it as a map key.
 */
export type ClientId = string & { readonly [brand]: 'ClientId' }
