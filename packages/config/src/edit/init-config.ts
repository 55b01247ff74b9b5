/** Makes a starter configuration with every key commented out and its default. */
import { describeKey } from '../toml/describe-key.ts'
import { formatName } from '../toml/key-path.ts'
import { type Key, type Shape, sectionKeys } from '../toml/schema-keys.ts'
import type { OwnedSection } from '../types.ts'
import { formatLiteral } from './toml-literal.ts'

const HEAD = `# Sluice configuration. A key that is commented out shows its default: remove the # in front of it, and of the
# [section] above it, to change it. \`sluice config check\` reports mistakes, and \`sluice config set KEY VALUE\` changes one
# key and encrypts secrets.
`

/** Settings of a new installation that are not defaults, so that older configurations keep their meaning. */
const STARTS_WITH: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'security.policy': { shell: 'script' },
  'security.sandbox': { required: true },
  'channels_config.voice_wake': { wake_whole_word: true },
}

/** The section of a channel stays commented out: it would enable the channel. */
const isSet = (path: string): boolean => path in STARTS_WITH && !path.startsWith('channels_config.')

/** Returns a text that loads and sets only `STARTS_WITH`. A line with a setting starts with # and no space. */
export function starterConfig(sections: readonly OwnedSection[]): string {
  const keys = new Map<string, Map<string, Key>>()
  for (const { section } of sections) {
    const known = keys.get(section.path) ?? new Map<string, Key>()
    keys.set(section.path, known)
    for (const [name, key] of sectionKeys(section.schema)) if (!known.has(name)) known.set(name, key)
  }
  const blocks = [...keys].flatMap(([path, known]) => {
    if (known.size === 0) return []
    const given = STARTS_WITH[path]
    const before = isSet(path) ? '' : '#'
    return `${before}[${path}]\n${[...known].map(([name, key]) => keyLines(name, key, { before, given: given?.[name] })).join('')}`
  })
  return [HEAD, ...blocks].join('\n')
}

function keyLines(name: string, key: Key, { before, given }: { readonly before: string; readonly given: unknown }): string {
  const meaning = key.meaning === undefined ? '' : `# ${key.meaning}\n`
  const { fallback } = key
  if (given !== undefined) {
    const usual = fallback === undefined ? '' : `  # default: ${formatLiteral(fallback)}`
    return `${meaning}${before}${formatName(name)} = ${formatLiteral(given)}${usual}\n`
  }
  if (fallback !== undefined) return `${meaning}#${formatName(name)} = ${formatLiteral(fallback)}${notes(key, '  # ')}\n`
  return `${meaning}# ${formatName(name)} = ${formatLiteral(placeholder(key.shape))}${notes(key, '  # ')}\n`
}

/** Returns an example for a value that only the operator knows. */
function placeholder(shape: Shape): unknown {
  switch (shape.kind) {
    case 'text':
      return '…'
    case 'number':
      return shape.min ?? 0
    case 'flag':
      return false
    case 'choice':
      return shape.options[0]
    case 'list':
      return []
    case 'table':
      return {}
    case 'any':
      return shape.of[0] ? placeholder(shape.of[0]) : '…'
  }
}

function notes(key: Key, before: string): string {
  const { env = [], envWins, secret } = key.metadata
  const all = [
    `${describeKey(key)}${members(key)}`,
    ...(secret ? ['a secret'] : []),
    ...(key.optional ? [] : ['required']),
    ...(env.length > 0 ? [`${env.join(' or ')} ${envWins ? 'overrides it' : 'fills it in'}`] : []),
  ]
  return `${before}${all.join('; ')}`
}

/** Returns a note about the keys of the tables in a list. */
function members({ shape }: Key): string {
  const item = shape.kind === 'list' ? shape.item.shape : undefined
  return item?.kind === 'table' && item.keys.size > 0 ? `, each with ${[...item.keys.keys()].join(', ')}` : ''
}
