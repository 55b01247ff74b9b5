/** Descriptions of the configuration: the starter file, the JSON Schema and the reference. */

import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { starterConfig } from '../edit/init-config.ts'
import { CORE_SECTIONS, sandboxSection } from '../sections/core-sections.ts'
import { load, SAMPLE_SECTIONS } from '../testing/sample-sections.ts'
import { parseToml } from '../toml/parse-toml.ts'
import type { OwnedSection } from '../types.ts'
import { configSchema } from './json-schema.ts'
import { configReference } from './reference.ts'

describe('starter file', () => {
  const text = starterConfig(SAMPLE_SECTIONS)

  const STARTS_WITH = '[security.policy]\nshell = "script"\n[security.sandbox]\nrequired = true\n'

  test('loads unchanged and sets only that a sandbox is required', async () => {
    const [started, empty] = await Promise.all([load(text), load(STARTS_WITH)])
    expect(started.core(sandboxSection).required).toBe(true)
    for (const { path } of CORE_SECTIONS) expect(started.hash('core', path)).toBe(empty.hash('core', path))
    expect(started.of('channel-roomchat')).toMatchObject({ state: 'unconfigured' })
    expect(started.leftOut).toEqual([])
  })

  test('means the same when every setting is uncommented', async () => {
    const sections = SAMPLE_SECTIONS.filter(({ owner }) => owner === 'core' || owner === 'observability-metrics')
    const open = starterConfig(sections).replaceAll(/^#(?=\S)/gm, '')
    const [opened, empty] = await Promise.all([load(open, { sections }), load(STARTS_WITH, { sections })])
    for (const { path } of CORE_SECTIONS) expect(opened.hash('core', path)).toBe(empty.hash('core', path))
    expect(open).toContain('\nport = 42617  # a whole number between 0 and 65535; SVC_GATEWAY_PORT overrides it\n')
  })

  test('suggests settings of channels without enabling the channel', () => {
    const voice = {
      owner: 'channel-voice-wake',
      section: { path: 'channels_config.voice_wake', schema: v.object({ wake_whole_word: v.optional(v.boolean(), false) }) },
    }
    const text = starterConfig([voice as OwnedSection])
    expect(text).toContain('#[channels_config.voice_wake]\n#wake_whole_word = true  # default: false\n')
  })

  test('stays valid TOML when any one key is uncommented', async () => {
    const lines = text.split('\n')
    const isKey = (line: string) => /^# ?[\w"-]+ = /.test(line)
    expect(lines.filter(isKey).length).toBeGreaterThan(50)
    for (const [at, line] of lines.entries()) {
      if (!isKey(line)) continue
      const header = lines.slice(0, at).findLastIndex((above) => /^#?\[/.test(above))
      const alone = lines.with(at, line.replace(/^# ?/, ''))
      for (const changed of [alone, alone.with(header, (lines[header] ?? '').replace('#', ''))])
        await expect(parseToml(changed.join('\n'), 'x.toml'), line).resolves.toBeDefined()
    }
  })

  test('names each section once and every key with its accepted values', () => {
    expect(text.match(/^#\[observability\]$/gm)).toHaveLength(1)
    expect(text).toContain('# Its own messages are ignored.\n#bot_name = ""  # a string, at most 20 characters\n')
    expect(text).toContain('# app_token = "…"  # a string that is not empty; a secret; required\n')
    expect(text).toContain('#label_filter = ["INBOX"]  # an array of strings; MAILPUSH_LABELS fills it in\n')
    expect(text).toContain(
      '#fallback = []  # an array of tables, at most 8 entries, each with kind, base_url, api_key, model, headers, options, ',
    )
  })
})

describe('JSON Schema', () => {
  interface Definition {
    readonly type?: string
    readonly properties: Record<string, Definition>
    readonly items: Definition
    readonly additionalProperties: unknown
    readonly [more: string]: unknown
  }
  const schemaOf = async (sections = SAMPLE_SECTIONS) => (await configSchema(sections)) as Definition
  const at = (schema: Definition, ...path: string[]) =>
    path.reduce<Definition | undefined>((found, name) => found?.properties[name], schema)

  test('has every key with its type, bounds and default', async () => {
    const schema = await schemaOf()
    expect(schema.$schema).toBe('http://json-schema.org/draft-07/schema#')
    expect(at(schema, 'gateway', 'port')).toMatchObject({
      type: 'integer',
      minimum: 0,
      maximum: 65_535,
      default: 42_617,
      'x-env': ['SVC_GATEWAY_PORT'],
      'x-env-wins': true,
    })
    expect(at(schema, 'channels_config', 'roomchat', 'bot_name')).toMatchObject({
      description: 'Its own messages are ignored.',
      maxLength: 20,
    })
    expect(at(schema, 'observability')?.properties).toMatchObject({ backend: {}, metrics_loopback_only: { type: 'boolean' } })
  })

  test('allows unknown names only where a schema allows any name', async () => {
    const schema = await schemaOf()
    const closed = [schema, at(schema, 'gateway'), at(schema, 'security'), at(schema, 'channels_config', 'roomchat', 'retry')]
    for (const table of closed) expect(table).toMatchObject({ type: 'object', additionalProperties: false })
    expect(at(schema, 'provider', 'fallback')?.items).toMatchObject({ additionalProperties: false, required: ['kind'] })
    expect(at(schema, 'channels_config', 'roomchat', 'accounts')?.additionalProperties).toMatchObject({
      additionalProperties: false,
      properties: { token: { writeOnly: true } },
    })
  })

  test('marks secrets at every depth', async () => {
    const schema = await schemaOf()
    const marks = { type: 'string', writeOnly: true, 'x-env': ['SVC_GATEWAY_WEBHOOK_SECRET'], 'x-env-wins': true }
    expect(at(schema, 'gateway', 'webhook_secret')).toMatchObject(marks)
    expect(at(schema, 'provider', 'fallback')?.items.properties.api_key).toMatchObject({ writeOnly: true })
  })

  test('requires the required keys that the environment cannot supply', async () => {
    const schema = v.object({ a: v.string(), b: v.pipe(v.string(), v.metadata({ env: ['B'] })), c: v.optional(v.string()) })
    const found = await schemaOf([{ owner: 'x-a', section: { path: 'a', schema } }] as unknown as OwnedSection[])
    expect(at(found, 'a')?.required).toEqual(['a'])
    expect(found.required).toBeUndefined()
  })

  test('groups sections by task, names them in words, and marks the keys that wait for the next start', async () => {
    const schema = await schemaOf()
    const tasks = schema['x-tasks'] as { id: string; title: string; about: string }[]
    expect(tasks).toContainEqual({ id: 'cluster', title: 'Cluster', about: expect.stringMatching(/\.$/) })
    expect(at(schema, 'provider')).toMatchObject({ title: 'The model that answers', 'x-task': 'models' })
    expect(at(schema, 'gateway', 'texts')).toMatchObject({ 'x-task': 'platforms' })
    expect(at(schema, 'channels_config', 'roomchat')).toMatchObject({ title: 'Nextcloud Talk', 'x-task': 'platforms' })
    expect(at(schema, 'aliases')).toMatchObject({ title: 'aliases', 'x-task': 'other' })
    expect(at(schema, 'gateway', 'port')).toMatchObject({ 'x-restart': true })
    expect(at(schema, 'gateway', 'public_url')).not.toHaveProperty('x-restart')
    for (const key of Object.values(at(schema, 'store')?.properties ?? {})) expect(key).toMatchObject({ 'x-restart': true })
  })

  test('can be written as JSON', async () => {
    const schema = await schemaOf()
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema)
  })
})

describe('reference', () => {
  const rows = configReference(SAMPLE_SECTIONS)
  const row = (section: string, key: string) => rows.find((candidate) => candidate.section === section && candidate.key === key)

  test('has one row for every key, also in nested tables and lists', () => {
    expect(new Set(rows.map(({ section, key }) => `${section} ${key}`)).size).toBe(rows.length)
    const keys = ['retry', 'retry.attempts', 'accounts', 'accounts.<name>', 'accounts.<name>.token', 'kinds', 'kinds[].size']
    for (const key of keys) expect(row('channels_config.roomchat', key)?.owner).toBe('channel-roomchat')
    expect(row('provider', 'fallback[].kind')).toMatchObject({ required: true })
    expect(row('cost', 'prices.<name>.input')).toMatchObject({ type: 'a number of at least 0' })
  })

  test('describes a key completely', () => {
    expect(row('channels_config.mailpush', 'renew_hours')).toEqual({
      owner: 'channel-mailpush',
      section: 'channels_config.mailpush',
      key: 'renew_hours',
      type: 'a number',
      required: false,
      fallback: 24,
      env: ['MAILPUSH_RENEW', 'MAILPUSH_RENEW_OLD'],
      envWins: false,
      secret: false,
    })
    expect(row('channels_config.roomchat', 'webhook_secret')).toMatchObject({ secret: true, envWins: true })
    expect(row('channels_config.roomchat', 'bot_name')?.meaning).toBe('Its own messages are ignored.')
  })
})
