declare const brand: unique symbol

/**
 * The opaque identity of one connected client (§1, shared-state contract item 2). Only the gateway mints one, at
 * connection time or per (channel, sender); tools receive it in their context and cannot make their own.
 * Comparable with `===` and usable as a map key.
 */
export type ClientId = string & { readonly [brand]: 'ClientId' }
