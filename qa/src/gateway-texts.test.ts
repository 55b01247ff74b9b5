/** Each text that Sluice itself writes to people in chats is in the table of `packages/sdk/src/feature/gateway-texts.ts`, which can be translated. */
import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { gatewaySection } from '@sluice/config'
import { GATEWAY_TEXTS, type GatewayText, type GatewayTextRow, gatewayText, valuesIn } from '@sluice/sdk'
import { type Node, parse } from 'acorn'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'

const PACKAGES = join(import.meta.dirname, '../../packages')
/** Packages whose code makes messages for people in chats. */
const FOLDERS = ['approvals', 'delivery', 'channel-*']
/** Calls whose texts are for operators, programs or models. */
const FOR_OTHERS =
  /^(?:AppError|Error|TypeError|description|metadata|info|warn|error|debug|gap|check|regex|maxLength|minLength|problem|notify|RegExp|sentenceOf|exec|test|assert)$/
/** Words that a person could read: a sentence or a note in brackets. */
const WORDS = /^\W?[A-Za-z][\w'’-]*(?:,? [\w'’{}$-]+){2,}[^/]*$/

/** Files with texts for models and operators. */
const EXCEPT: readonly (readonly [file: string, why: string])[] = [
  ['approvals/src/api.ts', 'describes the API'],
  ['approvals/src/targets.ts', 'tells programs why a target is not available'],
  ['delivery/src/absent-channels.ts', 'tells operators what waits for channels that are not there'],
  ['delivery/src/inbox/before-restore.ts', 'gives operators the reason of a dead letter'],
  ['delivery/src/inbox/read-message.ts', 'tells operators why a stored message cannot be read'],
  ['delivery/src/operators/replay.ts', 'answers operators'],
  ['delivery/src/outbox/channel-health.ts', 'tells operators why a channel is degraded'],
  ['delivery/src/outbox/undelivered.ts', 'tells operators what a platform reported later'],
  ['channel-relaynet/src/blossom.ts', 'authorizes an upload to a server'],
  ['channel-relaynet/src/parse.ts', 'tells the model about a file'],
  ['delivery/src/inbox/admit-message.ts', 'tells operators about a paused conversation'],
  ['delivery/src/inbox/late-changes.ts', 'tells the model about changes'],
  ['delivery/src/inbox/media.ts', 'tells the model about attachments'],
  ['delivery/src/inbox/room-text.ts', 'tells the model about rooms'],
  ['delivery/src/inbox/text-for-model.ts', 'is for the model'],
]

/** The beginnings of texts for operators and programs: reasons in the inbox and the outbox, and results of commands. */
const FOR_OPERATORS = [
  'an internal error of the channel',
  'fetched by us',
  'it was started ',
  'sluice outbox show ',
  'stopped by ',
  'the rule of the room ',
  'The daemon stopped before it was sent.',
]

/** Members of messages. */
const MEMBERS = ['body', 'caption', 'content', 'label', 'subject', 'text', 'title', 'topic']

/** Returns the texts of a file that look like words for people; with `isOnlyMembers`, only those that are members of messages. */
function wordsIn(file: string, isOnlyMembers = false): readonly string[] {
  const javascript = stripTypeScriptTypes(readFileSync(join(PACKAGES, file), 'utf8'))
  const found: string[] = []
  const visit = (value: unknown, isForOthers: boolean, isMember = !isOnlyMembers): void => {
    if (Array.isArray(value)) for (const each of value) visit(each, isForOthers, isMember)
    if (typeof value !== 'object' || value === null || !('type' in value)) return
    const node = value as Node & Record<string, unknown>
    const callee = node.callee as (Node & { name?: string; property?: { name?: string } }) | undefined
    const name = callee?.property?.name ?? callee?.name ?? ''
    const others = isForOthers || FOR_OTHERS.test(name) || node.type === 'ThrowStatement' || node.type === 'ImportDeclaration'
    const text =
      node.type === 'TemplateLiteral' ? javascript.slice(node.start + 1, node.end - 1) : node.type === 'Literal' ? node.value : ''
    if (isMember && !others && typeof text === 'string' && WORDS.test(text)) found.push(text)
    const { name: member = '' } = (node.key ?? {}) as { readonly name?: string }
    const isIn = isMember || (node.type === 'Property' && MEMBERS.includes(member))
    for (const [key, child] of Object.entries(node)) if (key !== 'type') visit(child, others, isIn)
  }
  visit(parse(javascript, { ecmaVersion: 'latest', sourceType: 'module' }), false)
  return found
}

const files = FOLDERS.flatMap((folder) => globSync(`${folder}/src/**/*.ts`, { cwd: PACKAGES, exclude: ['**/testing/**', '**/*.test.ts'] }))

test.each(files.filter((file) => !EXCEPT.some(([except]) => except === file)))('%s has no words for people of its own', (file) => {
  expect(wordsIn(file, file.startsWith('channel-')).filter((words) => !FOR_OPERATORS.some((start) => words.startsWith(start)))).toEqual([])
})

test('finds words in sources', () => {
  expect(wordsIn('delivery/src/inbox/late-changes.ts').join()).toContain('An earlier message of')
})

describe.each(Object.entries<GatewayTextRow>(GATEWAY_TEXTS))('%s', (key, { text, maySayNothing = false }) => {
  const set = (given: string) => v.safeParse(gatewaySection.schema, { texts: { [key]: given } })

  test('is used by the code', () => {
    const sources = globSync('{agent,approvals,delivery}/src/**/*.ts', { cwd: PACKAGES, exclude: ['**/*.test.ts'] })
    const end = key.replace(/^guests_/, '')
    expect(
      sources.some((file) => new RegExp(`'(?:${key}|${end})'|: '${key}'|limit_`).test(readFileSync(join(PACKAGES, file), 'utf8'))),
    ).toBe(true)
  })

  test('can be translated with its values, and not with others', () => {
    const values = valuesIn(text)
    const translated = `übersetzt ${values.map((value) => `{${value}}`).join(' ')}`
    expect(set(translated).success).toBe(true)
    expect(set(`${translated} {no_such_value}`).success).toBe(false)
    expect(set('').success).toBe(maySayNothing)
    const filled = gatewayText(key as GatewayText, { [key]: translated }, Object.fromEntries(values.map((value) => [value, `<${value}>`])))
    expect(filled).toBe(`übersetzt ${values.map((value) => `<${value}>`).join(' ')}`)
  })
})
