/**
 * The part of the contract that a webhook needs to verify and parse requests: the entry `@sluice/sdk/webhook`. It loads no other
 * package, so that a server that uses the entry `./webhook` of a channel starts as fast as without it.
 */
export { normaliseE164 } from './channel/allow.ts'
export type { Attachment } from './channel/attachments.ts'
export type { Address, DeliveryReport, Inbound, Raw, Sample, SampleRequest, Verified, Webhook } from './channel/channel.ts'
export { chatCommandIn } from './channel/chat-commands.ts'
export {
  type Addressed,
  type Forwarded,
  forwardedPart,
  location,
  namePart,
  overheardPart,
  poll,
  type Quoted,
  quotedPart,
  type Thing,
  thing,
  thingsPart,
  unknownThing,
  wordsOf,
} from './channel/inbound-parts.ts'
export type { ErrorCode, ErrorOptions } from './values/errors.ts'
export { AppError } from './values/errors.ts'
export { isFresh } from './values/fresh.ts'
export { equalTexts, hmac, hmacSha256, verifyHmac } from './values/hmac.ts'
export { answerProvenContact, answerUnprovenContact, type Contact, HANDSHAKES, type HandshakeName } from './webhook/first-contact.ts'
export { type GivenHeaders, type RequestParts, rawRequest } from './webhook/raw-request.ts'
export { type Proof, type RequestToSign, type SignedRequest, signProof, verifyProof } from './webhook/webhook-proof.ts'
export { bodyHmac, type HmacScheme, SENDER_SCHEMES, type SenderName, type WebhookScheme } from './webhook/webhook-scheme.ts'
