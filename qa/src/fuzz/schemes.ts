/** The schemes by which channels verify the origin of a request. */
import type { Random } from './random.ts'
import type { Scheme } from './scheme.ts'
import { chatappScheme } from './scheme-chatapp.ts'
import { pushTokenScheme } from './scheme-push-token.ts'
import { roomchatScheme } from './scheme-roomchat.ts'
import { bizchatBearerScheme, bizchatTokenScheme, mailpushBearerScheme, mailpushTokenScheme } from './schemes-shared-secret.ts'
import { textrelayLegacyScheme, textrelayStandardScheme } from './schemes-textrelay.ts'

/** The schemes by name; each creates its valid requests from random numbers. */
export const SCHEMES = {
  chatapp: chatappScheme,
  'textrelay-legacy': textrelayLegacyScheme,
  'textrelay-standard': textrelayStandardScheme,
  roomchat: roomchatScheme,
  'mailpush-bearer': mailpushBearerScheme,
  'mailpush-token': mailpushTokenScheme,
  'mailpush-jwt': pushTokenScheme,
  'bizchat-token': bizchatTokenScheme,
  'bizchat-bearer': bizchatBearerScheme,
} as const satisfies Readonly<Record<string, (random: Random) => Promise<Scheme>>>

export type SchemeName = keyof typeof SCHEMES
