// Reads the exports of declaration files: the text of each declaration and its comment.
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from '@babel/parser'
import { plainComment } from './markdown.mjs'

/**
 * Returns the exports of an entry, sorted by name: `{ name, comment, text }`. `comment` is the text of the doc comment, and `text` the
 * declaration without it and without `export declare`. Follows re-exports between files; an export of another package has only `from`.
 */
export function exportsOf(file) {
  const found = new Map()
  for (const [name, source] of exportedNames(read(file))) found.set(name, describe(name, source))
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function read(file) {
  const text = readFileSync(file, 'utf8')
  const { body } = parse(text, { sourceType: 'module', plugins: [['typescript', { dts: true }]] }).program
  return { file, text, body }
}

/** Returns where each exported name is declared: `[name, { source, local }]`, or `{ from }` for another package. */
function exportedNames(source) {
  return source.body.flatMap((node) => {
    if (node.type === 'ExportDefaultDeclaration') return [['default', { source, local: node.declaration.name ?? 'default' }]]
    if (node.type !== 'ExportNamedDeclaration') return []
    if (node.declaration) return declaredNames(node.declaration).map((name) => [name, { source, local: name }])
    return node.specifiers.map(({ exported, local }) => [exported.name, target(source, node.source?.value, local.name)])
  })
}

const declaredNames = (declaration) => declaration.declarations?.map(({ id }) => id.name) ?? [declaration.id.name]

/** Follows an import or re-export to the file that declares the name. */
function target(source, from, name) {
  if (from === undefined) {
    const imported = source.body.find(
      (node) => node.type === 'ImportDeclaration' && node.specifiers.some(({ local }) => local.name === name),
    )
    if (!imported) return { source, local: name }
    const { imported: original } = imported.specifiers.find(({ local }) => local.name === name)
    return target(source, imported.source.value, original?.name ?? 'default')
  }
  if (!from.startsWith('.')) return { from, local: name }
  const other = read(resolve(dirname(source.file), from.replace(/\.[jt]s$/, '.d.ts')))
  const [, place] = exportedNames(other).find(([exported]) => exported === name) ?? []
  if (!place) throw new Error(`${source.file} exports '${name}', which ${other.file} does not have`)
  return place
}

function describe(name, { source, local, from }) {
  if (from) return { name, comment: '', text: `// See ${from}.\nexport { ${local} } from '${from}'` }
  const nodes = source.body.filter((node) => namesOf(node).includes(local))
  const comments = nodes.map((node) => docOf(node)).filter(Boolean)
  return { name, comment: comments.join('\n\n'), text: nodes.map((node) => textOf(source, node)).join('\n') }
}

/** Returns the names that a statement declares, exported or not. */
function namesOf(node) {
  const declaration = node.type === 'ExportNamedDeclaration' || node.type === 'ExportDefaultDeclaration' ? node.declaration : node
  if (node.type === 'ExportDefaultDeclaration' && !declaration.id) return declaration.type === 'Identifier' ? [] : ['default']
  return declaration?.id || declaration?.declarations ? declaredNames(declaration) : []
}

function docOf(node) {
  const comment = node.leadingComments?.at(-1)
  return comment?.type === 'CommentBlock' && comment.value.startsWith('*') ? plainComment(comment.value.slice(1)) : undefined
}

const textOf = ({ text }, { start, end }) =>
  text
    .slice(start, end)
    .replace(/^export (?:default )?(?:declare )?|^declare /, '')
    .replace(/^ +#private;\n(?=)/m, '')
    .replace(/^( {4})+/gm, (spaces) => ' '.repeat(spaces.length / 2))
    .replace(/;$/gm, '')
