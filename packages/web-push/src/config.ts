/** The configuration section `[web_push]`. */
import * as v from 'valibot'

const CONTACT_CHARS_MAX = 256

/** RFC 8292 accepts these two forms, and some push services refuse a request without one. */
function isContact(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'https:' || (url.protocol === 'mailto:' && url.pathname.includes('@')))
}

export const webPushSection = {
  path: 'web_push',
  schema: v.pipe(
    v.object({
      enabled: v.optional(v.pipe(v.boolean(), v.description('Lets browsers turn notifications on')), false),
      contact: v.exactOptional(
        v.pipe(
          v.string(),
          v.maxLength(CONTACT_CHARS_MAX),
          v.check(isContact, 'It must be mailto: with an address, or an https address'),
          v.description('Where the push services of browsers reach the operator, such as mailto:admin@example.com; they see it'),
        ),
      ),
    }),
    v.check(({ enabled, contact }) => !enabled || contact !== undefined, 'contact is needed where enabled is true'),
  ),
} as const

export type WebPushConfig = v.InferOutput<typeof webPushSection.schema>
