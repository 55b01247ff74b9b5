/** Reads `.gitignore` files as rules, which only a search thread runs. https://git-scm.com/docs/gitignore */
import type { Workspace } from '@sluice/sdk'

/** One line of a `.gitignore`. The last rule that matches a path decides. */
export interface IgnoreRule {
  /** The source of an expression for paths from the workspace, in which a folder ends with a slash. */
  readonly source: string
  /** Whether the rule keeps what an earlier one leaves out. */
  readonly keeps: boolean
}

export const IGNORE_FILE = '.gitignore'
const BYTES_MAX = 256 * 1024
const RULES_MAX = 1000
const TOKENS = /\\(.)|^\*\*\/|\/\*\*\/|\/\*\*$|\*+|\?|\[[!^]?[^\]/\\]+\]|[\\^$.|+(){}[\]/]/g

/** Resolves to the rules of a folder, for whose path stands a prefix such as `a/b/`. A file that cannot be read has none. */
export async function rulesIn(workspace: Workspace, prefix: string): Promise<readonly IgnoreRule[]> {
  const bytes = await workspace.read(`${prefix}${IGNORE_FILE}`, { bytesMax: BYTES_MAX }).catch(() => undefined)
  return bytes ? rulesOf(new TextDecoder().decode(bytes), prefix) : []
}

/** Resolves to the rules of all folders around one. */
export async function rulesAround(workspace: Workspace, prefix: string): Promise<readonly IgnoreRule[]> {
  const names = prefix.split('/').slice(0, -1)
  const around = names.map((_, at) =>
    names
      .slice(0, at)
      .map((name) => `${name}/`)
      .join(''),
  )
  return (await Promise.all(around.map((folder) => rulesIn(workspace, folder)))).flat()
}

export const rulesOf = (text: string, prefix: string): readonly IgnoreRule[] =>
  text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .slice(0, RULES_MAX)
    .map((line) => ruleOf(line, prefix))

function ruleOf(line: string, prefix: string): IgnoreRule {
  const keeps = line.startsWith('!')
  const written = withoutSpaces(keeps ? line.slice(1) : line)
  const isFolder = written.endsWith('/')
  const pattern = isFolder ? written.slice(0, -1) : written
  const anywhere = pattern.includes('/') ? '' : '(?:.*/)?'
  const body = pattern.replace(/^\//, '').replace(TOKENS, sourceOf)
  return { source: `^${escaped(prefix)}${anywhere}${body}${isFolder ? '/' : '/?'}$`, keeps }
}

const escaped = (text: string): string => text.replace(/[\\^$.|?*+(){}[\]/]/g, '\\$&')

/** Spaces at the end count only behind a backslash. */
function withoutSpaces(line: string): string {
  const trimmed = line.trimEnd()
  return trimmed.endsWith('\\') && trimmed.length < line.length ? `${trimmed} ` : trimmed
}

function sourceOf(token: string, literal?: string): string {
  if (literal !== undefined) return escaped(literal)
  if (token === '**/') return '(?:.*/)?'
  if (token === '/**/') return '/(?:.*/)?'
  if (token === '/**') return '/.+'
  if (token.startsWith('*')) return '[^/]*'
  if (token === '?') return '[^/]'
  if (token.length > 1) return token.replace(/^\[[!^]/, '[^/')
  return `\\${token}`
}
