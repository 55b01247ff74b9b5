/** Lists the names that a module exports, with types, without loading it. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

export interface ExportedName {
  readonly name: string
  readonly kind: 'value' | 'type'
}

/** A comment in a list of names is on a line of its own. */
const COMMENT = /^\s*\/[/*].*$/gm
const LIST = /^export (type )?\{([^}]*)\}/gm
const DECLARATION = /^export (?:declare )?(?:abstract )?(?:async )?(const|let|function\*?|class|interface|type|enum) (\w+)/gm
const DEFAULT = /^export default /m
const STAR = /^export (type )?\* from '(\.[^']+)'/gm

/** Reads the formatted source of a module. */
export function exportedNames(file: string): ExportedName[] {
  const source = readFileSync(file, 'utf8')
  const found: ExportedName[] = []
  for (const [, isType, list = ''] of source.matchAll(LIST)) {
    for (const entry of list.split(',')) {
      const [, own, name] = /^\s*(type )?(?:\w+ as )?(\w+)\s*$/.exec(entry.replace(COMMENT, '')) ?? []
      if (name !== undefined) found.push({ name, kind: isType || own ? 'type' : 'value' })
    }
  }
  for (const [, kind, name = ''] of source.matchAll(DECLARATION))
    found.push({ name, kind: kind === 'interface' || kind === 'type' ? 'type' : 'value' })
  if (DEFAULT.test(source)) found.push({ name: 'default', kind: 'value' })
  for (const [, isType, path = ''] of source.matchAll(STAR))
    for (const { name, kind } of exportedNames(resolve(file, '..', path)))
      if (name !== 'default') found.push({ name, kind: isType ? 'type' : kind })
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
