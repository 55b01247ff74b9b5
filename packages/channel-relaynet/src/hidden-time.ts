/** Seals and gift wraps hide the time of a message by up to two days (NIP-59). */
export const HIDDEN_SECS = 172_800
