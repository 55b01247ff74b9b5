/** The channels of this release, found by the catalogue, with what each gives to the suites in its `src/testing/index.ts`. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Abilities, type CatalogueId, type Feature, type Inbound, ROWS, type Row } from '@sluice/sdk'
import type { ArrivalSubject } from '@sluice/testkit/channel'
import type { ChannelTesting, WebhookTesting } from '@sluice/testkit/channel-testing'

export interface FoundChannel {
  readonly id: CatalogueId
  readonly row: Row
  /** The name of the channel and of its section. */
  readonly name: string
  readonly feature: Feature
  readonly testing: ChannelTesting
}

const PACKAGES = join(import.meta.dirname, '../../packages')

/** Loads a module by its path, because this package depends on no feature. */
const load = (id: string, file: string): Promise<Readonly<Record<string, unknown>>> =>
  import(pathToFileURL(join(PACKAGES, id, 'src', file)).href)

async function find(id: CatalogueId, row: Row): Promise<FoundChannel> {
  const [{ default: feature }, { testing }] = await Promise.all([load(id, 'index.ts'), load(id, 'testing/index.ts')])
  if (!testing) throw new Error(`packages/${id}/src/testing/index.ts exports no \`testing\`, so no suite can test the channel.`)
  const name = id.replace('channel-', '').replaceAll('-', '_')
  return { id, row, name, feature: inOwnSection(feature as Feature, name), testing: testing as ChannelTesting }
}

/**
 * A channel that shares its section with another one has a further section of its own name, in which the suites test it. It has no other
 * section then: two channels of one name would take the connection from each other.
 */
function inOwnSection(feature: Feature, name: string): Feature {
  const { moreSections, ...others } = feature
  const own = moreSections?.find(({ path }) => path === `channels_config.${name}`)
  return own ? { ...others, section: own, build: (host, config) => feature.build(host, config, own.path) } : feature
}

export const CHANNELS: readonly FoundChannel[] = await Promise.all(
  ROWS.filter(([, row]) => row.kind === 'channel').map(([id, row]) => find(id, row)),
)

export const abilitiesOf = async (id: CatalogueId): Promise<Abilities> => (await load(id, 'abilities.ts')).ABILITIES as Abilities

/** Returns what the recorded payloads of a channel say; empty for a channel without them. */
export async function arrivalsOf(id: CatalogueId): Promise<readonly ArrivalSubject[]> {
  if (!existsSync(join(PACKAGES, id, 'src/testing/arrivals.ts'))) return []
  return Object.values(await load(id, 'testing/arrivals.ts')) as ArrivalSubject[]
}

/** Returns the messages in the recorded payloads and fixtures of a channel. */
export async function recordedMessages(id: CatalogueId): Promise<readonly Inbound[]> {
  const messages: Inbound[] = globSync('fixtures/*.json', { cwd: join(PACKAGES, id) }).flatMap(
    (file) => (JSON.parse(readFileSync(join(PACKAGES, id, file), 'utf8')) as { expect?: Inbound[] }).expect ?? [],
  )
  for (const subject of await arrivalsOf(id)) for (const { payload } of subject.recorded) messages.push(...(await subject.parse(payload)))
  return messages
}

/** The channels with a webhook. */
export const WEBHOOKS: readonly (FoundChannel & { readonly webhook: WebhookTesting })[] = CHANNELS.flatMap((channel) =>
  channel.testing.webhook ? [{ ...channel, webhook: channel.testing.webhook }] : [],
)
