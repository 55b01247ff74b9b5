/** The section `[channels_config.relaynet]`. */
import { isLoopback } from '@sluice/kit'
import { httpUrl, type Refined, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const RELAYS = ['wss://relay.damus.io', 'wss://nos.lol', 'wss://relay.primal.net', 'wss://relay.snort.social']
const RELAYS_MAX = 16

const relayUrl = v.pipe(
  v.string(),
  v.check(isRelayUrl, 'must be a wss:// URL without user name and fragment, such as wss://relay.example (ws:// only for this machine)'),
  v.transform(relayKey),
)

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is not built')), true),
  private_key: v.pipe(secretText(), v.description('Private key of the bot: nsec1… or 64 hex digits. Whoever has it can write as the bot')),
  relays: v.optional(
    v.pipe(
      v.array(relayUrl),
      v.minLength(1),
      v.maxLength(RELAYS_MAX),
      v.transform((urls) => [...new Set(urls)]),
      v.description('Relays from which the bot receives messages'),
    ),
    RELAYS,
  ),
  allowed_pubkeys: v.optional(
    v.pipe(
      v.array(v.string()),
      v.description('Public keys that may write: npub1… or 64 hex digits; * allows every sender, an empty list none'),
    ),
    [],
  ),
  publish_relay_list: v.optional(
    v.pipe(
      v.boolean(),
      v.description('True: if the key has no list of relays for private messages (kind 10050), `relays` is published as this list'),
    ),
    true,
  ),
  blossom_url: v.optional(
    v.pipe(httpUrl(), v.description('Base URL of a Blossom server, to which attachments are uploaded encrypted; without it none are sent')),
  ),
})

export const relaynetSection = { path: 'channels_config.relaynet', schema, refine } as const

export type RelaynetConfig = v.InferOutput<typeof schema>

/** Checks the keys, and converts the keys of the allowlist to hex. */
async function refine(section: RelaynetConfig): Promise<Refined<RelaynetConfig>> {
  const { publicKeyOf, secretKeyOf } = await import('./keys.ts')
  const problems: { path: (string | number)[]; message: string }[] = []
  if (!secretKeyOf(section.private_key))
    problems.push({ path: ['private_key'], message: 'is not a private key of Nostr; it must be nsec1… or 64 hex digits' })
  const allowed = section.allowed_pubkeys.map((entry, index) => {
    const key = entry === '*' ? entry : publicKeyOf(entry)
    if (key === undefined)
      problems.push({ path: ['allowed_pubkeys', index], message: 'is not a public key of Nostr; it must be npub1…, 64 hex digits or *' })
    return key ?? entry
  })
  return { value: { ...section, allowed_pubkeys: allowed }, problems }
}

function isRelayUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url?.username !== '' || url.password !== '' || url.hash !== '') return false
  return url.protocol === 'wss:' || (url.protocol === 'ws:' && (url.hostname === 'localhost' || isLoopback(url.hostname)))
}

/** Returns one spelling for the URLs of one relay. */
function relayKey(text: string): string {
  const url = new URL(text)
  return url.search === '' ? url.href.replace(/\/$/, '') : url.href
}
