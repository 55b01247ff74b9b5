// Decides which licences a bundle may contain, and writes the notices that they require.

/** Licences that ask for nothing but that their text and the names of the authors are passed on. */
const PERMISSIVE = new Set([
  ...['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0', 'Zlib'],
  ...['CC0-1.0', 'Unlicense', 'Python-2.0', 'X11'],
])

/**
 * Returns true if an SPDX expression allows a bundle to contain the package under permissive licences alone. Of alternatives (`OR`),
 * one is enough; of licences that all apply (`AND`), each must be permissive. An unknown licence is not permissive.
 */
export function isPermissive(expression = '') {
  const tokens = expression.match(/[()]|[^\s()]+/g) ?? []
  let at = 0
  const any = () => {
    let result = all()
    while (tokens[at]?.toUpperCase() === 'OR') {
      at++
      result = all() || result
    }
    return result
  }
  const all = () => {
    let result = one()
    while (tokens[at]?.toUpperCase() === 'AND') {
      at++
      result = one() && result
    }
    return result
  }
  const one = () => {
    const token = tokens[at++]
    if (token !== '(') return PERMISSIVE.has(token)
    const result = any()
    return tokens[at++] === ')' && result
  }
  return any() && at === tokens.length
}

/** Returns one sentence for each package that a bundle must not contain. */
export const licenceProblems = (packages) =>
  packages
    .filter(({ licence }) => !isPermissive(licence))
    .map(({ key, licence }) => `${key} has the licence ${licence ?? '(none)'}, which is not a permissive one`)

const authorOf = (author) => (typeof author === 'string' ? author : author?.name)

/** Returns the text of the third-party notices: each package with its licence and the texts that its authors ship. */
export function thirdPartyNotices(packages) {
  const parts = packages.map(({ key, licence, author, homepage, texts }) => {
    const about = [`${key} (${licence})`, authorOf(author) && `Author: ${authorOf(author)}`, homepage].filter(Boolean).join('\n')
    return [about, ...(texts.length > 0 ? texts : ['The package has no licence file; its package.json names the licence above.'])].join(
      '\n\n',
    )
  })
  return `${['Sluice contains code of these packages.', ...parts].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}
