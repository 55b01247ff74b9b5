/** `[gateway.texts]`: replacements of the texts that Sluice itself writes to people in chats. */
import { GATEWAY_TEXTS, type GatewayText, type GatewayTextRow, valuesIn } from '@sluice/sdk'
import * as v from 'valibot'

const CHARS_MAX = 1000

const names = (values: readonly string[]): string => values.map((value) => `{${value}}`).join(', ')

/** A text without values that the English text does not have. */
function replacement(key: GatewayText) {
  const { text, when, maySayNothing }: GatewayTextRow = GATEWAY_TEXTS[key]
  const known = valuesIn(text)
  const problem = known.length === 0 ? 'must not contain values in braces' : `may only contain the values ${names(known)}`
  return v.optional(
    v.pipe(
      v.string(),
      v.check(
        (given) => (maySayNothing || given.trim() !== '') && given.length <= CHARS_MAX,
        `must be a string of ${maySayNothing ? 0 : 1} to ${CHARS_MAX} characters`,
      ),
      v.check((given) => valuesIn(given).every((value) => known.includes(value)), problem),
      v.description(`The text when ${when}: "${text.replaceAll('\n', ' / ')}"${maySayNothing ? '; an empty text sends nothing' : ''}`),
    ),
  )
}

const KEYS = Object.keys(GATEWAY_TEXTS) as GatewayText[]

export const gatewayTexts = v.object(
  Object.fromEntries(KEYS.map((key) => [key, replacement(key)])) as Record<GatewayText, ReturnType<typeof replacement>>,
)
