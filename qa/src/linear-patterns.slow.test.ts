/** Every regular expression of product code takes linear time, because one quadratic pattern lets one message stop the daemon. */

import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { ATTACHMENT_PATH, sha256Hex } from '@sluice/sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sourcePatterns } from './source-patterns.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const files = globSync('packages/*/src/**/*.ts', { cwd: ROOT })
  .filter((file) => !/\.test\.|\/testing|^packages\/testkit\//.test(file))
  .map((file) => ({ file, ...sourcePatterns(readFileSync(resolve(ROOT, file), 'utf8')) }))

/**
 * Product files that construct regular expressions, with representative instances of each. A new construction needs a line
 * here; prefer a literal, which needs none.
 */
const CONSTRUCTED: Readonly<Record<string, { readonly times: number; readonly instances: readonly RegExp[] }>> = {
  // The names come from a fixed set of HTML elements.
  'packages/mail-common/src/html-to-text.ts': { times: 1, instances: [/<\/script(?![a-z\d])/gi] },
  // The platform assigns the bot's id; it consists of letters and digits.
  'packages/channel-slack/src/plain-text.ts': { times: 1, instances: [/<@U0BOT(?:\|[^<>]*)?>[:,]?\s?/g] },
  // The routes are the gateway's own, and each parameter is one path segment.
  'packages/runtime/src/procedures/sop-settings.ts': { times: 1, instances: [/^\/api\/[^/]+\/runs\/[^/]+$/] },
  // The pattern is compiled only to check its syntax.
  'packages/sop/src/definition/output-schema.ts': { times: 1, instances: [] },
  // The path of an attachment as a line of its own, and wherever a text names it.
  'packages/http/src/routes/conversation-files.ts': {
    times: 1,
    instances: [
      new RegExp(String.raw`^\[(?:Image|Audio|Video|Document): ([^\]\n\r\u2028\u2029]{1,120})\] (${ATTACHMENT_PATH})(?: .*)?$`, 'gm'),
    ],
  },
  'packages/sdk/src/channel/attachments.ts': { times: 1, instances: [new RegExp(String.raw`(?<![\w/.-])${ATTACHMENT_PATH}\b`, 'g')] },
  // A copy of a literal in the same file.
  'packages/config/src/toml/key-path.ts': { times: 1, instances: [] },
}

/**
 * Patterns in which every repetition has an upper bound, so that each position of a text costs a bounded number of steps. The
 * checker reports quadratic growth up to such a bound as unlimited growth. The text is the worst case of each pattern.
 */
const BOUNDED: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/<untrusted source="([^"\n]{0,400})" id="[0-9a-f]{16}">\n/, `${'<untrusted source="<'.repeat(20)}\n`],
  [/\beyJ[\w-]{8,300}\.[\w-]{8,4096}\.[\w-]{8,4096}/g, `${'eyJ-'.repeat(75)}.${'eyJ-'.repeat(1024)}.`],
  [
    /\b(?:sk-[\w-]{16,512}|gh[pousr]_\w{20,512}|github_pat_\w{20,512}|glpat-[\w-]{16,512}|xox[abeoprs]-[\w-]{10,512}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,512}|eyJ[\w-]{8,300}\.[\w-]{8,4096}\.[\w-]{8,4096})/g,
    `${'eyJ-'.repeat(75)}.${'eyJ-'.repeat(1024)}.`,
  ],
  [
    /((?:api|access|private|secret|signing|encryption)[_-]?key|secret|token|passwd|password|passphrase|credentials?)([\w-]{0,40}["']?\s{0,4}[:=]{1,2}\s{0,4})("[^"\n]{8,512}"|'[^'\n]{8,512}'|[\w+/=.~!@#%^*-]{8,512})(?=([([]?))/gi,
    `secret${'token'.repeat(8)}="`,
  ],
]
const isBounded = ({ source, flags }: { readonly source: string; readonly flags: string }): boolean =>
  BOUNDED.some(([pattern]) => pattern.source === source && pattern.flags === flags)
/** Replaces character classes and escapes, in which `*` and `+` are plain characters. */
const repeats = (source: string): string => source.replace(/\\.|\[(?:\\.|[^\]])*\]/gs, 'x')
/** The number of ways in which the repetitions of a pattern can continue from one position; infinite where one has no upper bound. */
function waysAt(source: string): number {
  const bounds = repeats(source)
    .replaceAll('(?', '(')
    .matchAll(/\{(?:\d+,)?(\d*)\}|[*+?]/g)
  return bounds.reduce((ways, [repetition, most]) => ways * (most ? Number(most) : repetition === '?' ? 2 : Number.POSITIVE_INFINITY), 1)
}
/** Few ways at each position cost time that grows with the text. The checker takes them for unlimited growth now and then. */
const FEW_WAYS = 400

/**
 * The checker counts the characters that a pattern reads. Without its limits of time for one text, its verdict does not depend on the load of
 * the machine. It gives up before the test's own time limit.
 */
const LIMITS = { timeout: 120_000, maxIteration: 3, attackTimeout: null, incubationTimeout: null } as const
/** Limits of time that find the attack on a slow pattern soon. */
const QUICK = { timeout: 15_000, maxIteration: 3 } as const

const literals = [
  ...Map.groupBy(
    files.flatMap(({ file, literals }) => literals.map((literal) => ({ ...literal, place: `${file}:${literal.line}` }))),
    ({ source, flags }) => `/${source}/${flags}`,
  ).values(),
]
const instances = Object.values(CONSTRUCTED).flatMap(({ instances }) => instances)

/**
 * The patterns that a nightly run found safe, so that other runs judge only new ones. A nightly run judges all of them again and writes
 * this file. Each line names a pattern by a hash, which also covers the checker and its limits.
 */
const SAFE_FILE = join(import.meta.dirname, 'linear-patterns.txt')
const JUDGES_ALL = process.env.SLUICE_NIGHTLY === '1'
const { version } = createRequire(import.meta.url)('recheck/package.json')
const nameOf = ({ source, flags }: { readonly source: string; readonly flags: string }): string =>
  sha256Hex(JSON.stringify([version, LIMITS, source, flags])).slice(0, 16)
const known: ReadonlySet<string> = new Set(JUDGES_ALL ? [] : readFileSync(SAFE_FILE, 'utf8').split('\n'))

let check: typeof import('recheck').checkSync
beforeAll(async () => {
  // By default the checker searches for a native program and starts a worker for each call.
  process.env.RECHECK_SYNC_BACKEND = 'pure'
  check = (await import('recheck')).checkSync
})

describe('a regular expression of product code', () => {
  const constructed = instances.map(({ source, flags }) => ({ source, flags, place: 'constructed' }))
  const patterns = [...literals.flatMap(([first]) => first ?? []), ...constructed].filter(
    (pattern) => waysAt(pattern.source) > FEW_WAYS && !isBounded(pattern),
  )
  const safe: string[] = []
  afterAll(() => {
    if (JUDGES_ALL) writeFileSync(SAFE_FILE, `${safe.toSorted().join('\n')}\n`)
  })
  test.each(patterns.filter((pattern) => !known.has(nameOf(pattern))))('takes linear time: $place /$source/$flags', (pattern) => {
    const verdict = check(pattern.source, pattern.flags, LIMITS)
    expect(verdict.status, JSON.stringify('attack' in verdict ? verdict.attack.pattern : verdict)).toBe('safe')
    safe.push(nameOf(pattern))
  })

  test.each(BOUNDED)('with bounded repetitions takes linear time: %s', (pattern, text) => {
    expect(repeats(pattern.source)).not.toMatch(/[*+]|\{\d+,\}/)
    const megabyte = text.repeat(2 ** 20 / text.length)
    expect(megabyte.replace(pattern, '').length).toBeGreaterThan(0)
  })

  test('is a literal or has its construction listed here', () => {
    const found = files.filter(({ constructed }) => constructed.length > 0).map(({ file, constructed }) => [file, constructed.length])
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(Object.entries(CONSTRUCTED).map(([file, { times }]) => [file, times])))
  })
})

describe('the check', () => {
  test.each([/\s+$/, /\/+$/, /\[FILE:\s*([^\]]{1,1000}?)\s*\]/i, /^(?:a+)+$/, /^Name:\s*(.*?)\s*$/])(
    'finds super-linear time in %s',
    ({ source, flags }) => {
      expect(check(source, flags, QUICK).status).toBe('vulnerable')
    },
  )

  test.each([
    [/a?b{3}c{0,40}\bd/, 240],
    [/(?:a|b)[+*{]\*/, 1],
    [/a{2,}/, Number.POSITIVE_INFINITY],
    [/(?<=a)b+/, Number.POSITIVE_INFINITY],
  ])('counts the ways in which %s can continue', ({ source }, ways) => {
    expect(waysAt(source)).toBe(ways)
  })

  test('finds literals and constructions, but not in texts or comments', () => {
    const source = "const a: RegExp = /a\\/b+/gi // /c/\nconst text = '/d/'\nconst b = new RegExp(text as string) ?? RegExp('e', 'u')"
    expect(sourcePatterns(source)).toEqual({
      literals: [{ source: 'a\\/b+', flags: 'gi', line: 1 }],
      constructed: [expect.stringContaining('new RegExp(text'), "RegExp('e', 'u')"],
    })
  })
})
