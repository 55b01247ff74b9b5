/** Every channel of the catalogue takes part in every suite. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sectionKeys } from '@sluice/config'
import { sectionsOfFeature } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { Link } from '@sluice/testkit/link'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { abilitiesOf, arrivalsOf, CHANNELS, recordedMessages } from './channels.ts'
import { CHATS } from './daemons/chats.ts'
import { SCHEMES } from './fuzz/schemes.ts'
import { SENDER_FUZZ } from './fuzz/sender-schemes.ts'

const PACKAGES = join(import.meta.dirname, '../../packages')

/** Channels whose messages other suites hold, each with the reason. */
const WITHOUT_ARRIVALS: Readonly<Record<string, string>> = {
  'channel-email': 'the corpora of mails and the structures of mails in packages/mail-common and structure.test.ts',
  'channel-mailpush': 'the corpora of mails in packages/mail-common, and parse.test.ts',
  'channel-voice-call': 'people only speak',
  'channel-voice-wake': 'people only speak',
}

test('every package of a channel is in the catalogue', () => {
  expect(globSync('channel-*', { cwd: PACKAGES }).toSorted()).toEqual(CHANNELS.map(({ id }) => id).toSorted())
})

test('the names of signing schemes are unique', () => {
  const ofChannels = CHANNELS.flatMap(({ testing }) => Object.keys(testing.webhook?.schemes ?? {})).length
  expect(SCHEMES.size).toBe(ofChannels + SENDER_FUZZ.length)
})

describe.each(CHANNELS)('$id', ({ id, row, name, feature, testing }) => {
  const build = async () => {
    const { fake, section } = await testing.connect(() => 0)
    await using _closed = { [Symbol.asyncDispose]: () => fake.close() }
    const [channel] = feature.build(testHost(), v.parse(feature.section?.schema ?? v.any(), section)).channels ?? []
    if (!channel) throw new Error(`The section of the fake of ${name} builds no channel.`)
    return channel
  }

  test('builds a channel of its name from the section of its fake', async () => {
    const channel = await build()
    expect(channel.name).toBe(name)
    expect(channel.missingConfig).toBeUndefined()
    expect([row.section, ...(row.moreSections ?? [])]).toContain(`channels_config.${name}`)
  })

  test('does nothing without its section, and its variables have its name, so that a bundle loads it when one of them is set', () => {
    const { schema } = feature.section ?? {}
    if (!schema) throw new Error(`${name} has no section.`)
    const { success, output } = v.safeParse(schema, {})
    const parts = success ? feature.build(testHost(), output) : undefined
    const doesNothing = !parts || parts.disabledReason !== undefined || (parts.channels ?? []).every((channel) => channel.missingConfig)
    // A channel that a build must name may work by its defaults; in a bundle, it needs the header of its section.
    expect(doesNothing || row.flag !== null).toBe(true)
    const variables = [...sectionKeys(schema).values()].flatMap(({ metadata }) => metadata.env ?? [])
    for (const variable of variables) expect(variable).toContain(name.toUpperCase())
  })

  test('runs the conformance suite', () => {
    const suite = readFileSync(join(PACKAGES, id, 'src/conformance.test.ts'), 'utf8')
    for (const part of ['channelConformance({', 'names: ABILITIES.names']) expect(suite).toContain(part)
  })

  test('has recorded payloads of all that people can send', async () => {
    const reason = WITHOUT_ARRIVALS[id]
    if (reason !== undefined) return expect([reason === '', await arrivalsOf(id)]).toEqual([false, []])
    const subjects = await arrivalsOf(id)
    expect(subjects.flatMap(({ recorded }) => recorded).length, 'recorded payloads in src/testing/arrivals.ts').toBeGreaterThan(0)
    const suites = ['src/conformance.test.ts', 'src/testing/subject.ts'].map((file) => join(PACKAGES, id, file)).filter(existsSync)
    expect(suites.map((file) => readFileSync(file, 'utf8')).join('')).toMatch(/\barrivals: \w+Arrivals\b/)
  })

  test('has reference requests and signing schemes for its webhook', async () => {
    const { webhook, listen } = await build()
    if (!webhook) return expect(testing.webhook).toBeUndefined()
    expect(webhook.unsigned).toBeUndefined()
    const { schemes = {}, vectors = [] } = testing.webhook ?? {}
    expect(Object.keys(schemes).length, 'testing.webhook.schemes, for the fuzzer').toBeGreaterThan(0)
    const statuses = vectors.flatMap(({ answers }) => answers.map((answer) => (typeof answer === 'number' ? answer : answer[0])))
    expect(statuses, 'testing.webhook.vectors, with accepted and refused requests').toEqual(expect.arrayContaining([200, 401]))
    if (!listen) expect(testing.webhook?.bare, 'testing.webhook.bare, for the test of the entry ./webhook').toBeDefined()
  })

  test('has a crash kind, for the crash suite', () => {
    if (testing.noPlatform === undefined) expect(testing.crashKind, 'testing.crashKind').toBeDefined()
    else expect([testing.noPlatform.length > 0, testing.crashKind]).toEqual([true, undefined])
  })

  test.skipIf(testing.noPlatform !== undefined)(
    'has a fake that listens by listenOnLoopback of testkit, so that the crash suite can cut its network',
    async () => {
      const link = new Link()
      const { fake } = await link.through(() => testing.connect(() => 0))
      const { servers } = link
      await Promise.all([fake.close(), link.close()])
      expect(servers).toBeGreaterThan(0)
    },
  )

  test('states in its crash kind whether the platform drops repeats', async () => {
    const kind = await testing.crashKind?.()
    await kind?.fake.close()
    if (kind) expect(kind.dropsRepeats ?? false).toBe((await build()).limits.dedupesClientIds ?? false)
  })

  test('has a chat if it is a notification target', async () => {
    const { notifications } = await build()
    expect(notifications?.target).toBe(row.target)
    expect(CHATS.includes(name), 'testing.chat, for the tests of approvals and notifications').toBe(row.target !== undefined)
  })

  test('encodes ids in paths by pathSegment of kit, which refuses `..`', () => {
    const sources = globSync('src/**/*.ts', { cwd: join(PACKAGES, id), exclude: ['src/testing/**', '**/*.test.ts'] })
    expect(sources.filter((file) => readFileSync(join(PACKAGES, id, file), 'utf8').includes('encodeURIComponent'))).toEqual([])
  })

  test('declares what arrives and what can be sent as its recorded payloads and its methods have it', async () => {
    const { arrives, sends } = await abilitiesOf(id)
    const messages = await recordedMessages(id)
    const found = new Set(
      messages.flatMap(({ attachments, quoted, quotedFrom, forwarded, group, changes, things = [] }) => [
        ...(attachments ? ['files'] : []),
        ...(quoted || quotedFrom !== undefined ? ['quotes'] : []),
        ...(forwarded ? ['forwards'] : []),
        ...(group ? ['albums'] : []),
        ...(changes ? [`${changes.what === 'edited' ? 'edit' : 'deletion'}s`] : []),
        ...things.map(({ kind }) => kind),
      ]),
    )
    expect(
      [...found].filter((what) => !arrives.includes(what as never)),
      'arrives',
    ).toEqual([])
    const { limits, update, typing, acknowledge, offerCommands } = await build()
    const methods = { files: limits.attachments, edits: update, typing, reactions: acknowledge, commands: offerCommands }
    const built = Object.entries(methods).flatMap(([name, method]) => (method ? [name] : []))
    // Some channels send files only with a further key of their section.
    expect(new Set(sends)).toEqual(new Set([...built, ...(sends.includes('files') ? ['files'] : [])]))
  })

  test('has a page for operators', () => {
    expect(existsSync(join(PACKAGES, id, 'README.md'))).toBe(true)
  })
})

test('no two sections of a channel build channels of the same name', () => {
  for (const { name, feature } of CHANNELS) {
    const paths = sectionsOfFeature(feature).map(({ path }) => path)
    expect(new Set(paths).size, name).toBe(paths.length)
  }
})
