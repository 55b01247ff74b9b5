/**
 * The part of the contract that a webhook needs to verify and parse requests: the entry `@sluice/sdk/webhook`. It loads no other
 * package, so that a server that uses the entry `./webhook` of a channel starts as fast as without it.
 */
export { normaliseE164 } from './allow.ts'
export type { Address, Attachment, Inbound, Raw, Sample, SampleRequest, Verified, Webhook } from './channel.ts'
export type { ErrorCode, ErrorOptions } from './errors.ts'
export { AppError } from './errors.ts'
export { isFresh } from './fresh.ts'
export { equalTexts, hmac, hmacSha256, verifyHmac } from './hmac.ts'
export { type GivenHeaders, type RequestParts, rawRequest } from './raw-request.ts'
export { type Proof, type RequestToSign, type SignedRequest, signProof, verifyProof } from './webhook-proof.ts'
export { bodyHmac, type HmacScheme, SENDER_SCHEMES, type SenderName, type WebhookScheme } from './webhook-scheme.ts'
