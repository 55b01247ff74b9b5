/** Translates glob patterns into regular expressions, which only a search thread runs. */

const TOKENS = /\*\*\/|\*\*|\*|\?|\[!?[^\]/\\]+\]|[{},]|[\\^$.|+()[\]/]/g

/**
 * Returns the source of an expression for paths with `/`. `*` and `?` stay inside of one name, `**` crosses folders, and `{a,b}` and `[a-z]` are
 * alternatives. A pattern without `/` matches names in every folder.
 */
export function globSource(glob: string): string {
  const pattern = glob.replace(/^(?:\.?\/)+/, '')
  const hasGroups = areBalanced(pattern)
  let depth = 0
  const source = pattern.replace(TOKENS, (token) => {
    if (token === '**/') return '(?:.*/)?'
    if (token === '**') return '.*'
    if (token === '*') return '[^/]*'
    if (token === '?') return '[^/]'
    if (token.length > 1) return token.replace('[!', '[^')
    if (token === ',') return depth > 0 ? '|' : ','
    if (!hasGroups || !'{}'.includes(token)) return `\\${token}`
    depth += token === '{' ? 1 : -1
    return token === '{' ? '(?:' : ')'
  })
  return `^${pattern.includes('/') ? '' : '(?:.*/)?'}${source}$`
}

function areBalanced(pattern: string): boolean {
  let depth = 0
  for (const char of pattern) {
    if (char === '{') depth++
    else if (char === '}' && --depth < 0) return false
  }
  return depth === 0
}
