/** Finds names in the file that are unknown, and names of features that this build leaves out. */

import { nearestName } from '@sluice/kit'
import { buildHint, type CatalogueId } from '@sluice/sdk'
import { describeKind } from '../toml/describe-key.ts'
import { formatKeyPath, formatName, type KeyPath } from '../toml/key-path.ts'
import type { Finding } from '../toml/problem.ts'
import { isTable, RESERVED, unknownKey, unknownKeys } from '../toml/unknown-keys.ts'
import type { LeftOut } from '../types.ts'
import { type KnownTable, namesIn, sectionNamed, sectionsWith } from './known-keys.ts'

type Table = Readonly<Record<string, unknown>>

export interface NameCheck {
  readonly findings: readonly Finding[]
  readonly leftOut: readonly LeftOut[]
}

export function checkNames(file: Table, known: KnownTable): NameCheck {
  const findings: Finding[] = []
  const leftOut = new Map<string, LeftOut>()

  const leaveOut = (path: KeyPath, feature: CatalogueId): void => {
    const section = formatKeyPath(path)
    leftOut.set(`${section} ${feature}`, { section, feature, build: buildHint(feature) })
  }

  const checkSection = (table: Table, section: KnownTable): void => {
    for (const [name, value] of Object.entries(table)) {
      const path = [...section.path, name]
      const key = section.keys.get(name)
      const below = section.sections.get(name)
      const absent = section.leftOutKeys.get(name)
      if (key) findings.push(...unknownKeys(value, key, path))
      else if (absent) leaveOut(section.path, absent)
      else if (below?.leftOut) leaveOutWhole(value, below, below.leftOut)
      else if (below) descend(value, below)
      else if (section.rest && !RESERVED.has(name)) findings.push(...unknownKeys(value, section.rest, path))
      else findings.push({ path, at: 'name', message: unknownName(known, section, name, value) })
    }
  }

  const leaveOutWhole = (value: unknown, section: KnownTable, feature: CatalogueId): void => {
    leaveOut(section.path, feature)
    const names = isTable(value) ? Object.keys(value) : []
    for (const name of names) {
      const other = section.leftOutKeys.get(name)
      if (other) leaveOut(section.path, other)
    }
  }

  const descend = (value: unknown, section: KnownTable): void => {
    if (isTable(value)) checkSection(value, section)
    else findings.push({ path: section.path, at: 'value', message: notTable(section.path.join('.'), value) })
  }

  checkSection(file, known)
  return { findings, leftOut: [...leftOut.values()] }
}

const notTable = (header: string, value: unknown): string => {
  const found = Array.isArray(value) ? `not as [[${header}]]` : `but the file has ${describeKind(value)}`
  return `\`${header}\` is a section and is written as [${header}], ${found}`
}

function unknownName(known: KnownTable, section: KnownTable, name: string, value: unknown): string {
  const path = [...section.path, name]
  const elsewhere = sectionsWith(known, name)[0]
  if (section.path.length > 0 && (section.owned || !isTable(value))) {
    const sentence = unknownKey(path, namesIn(section))
    return elsewhere && !sentence.includes(';') ? `${sentence}; [${elsewhere}] has a key of that name` : sentence
  }
  if (!isTable(value) && !Array.isArray(value)) {
    const hint = elsewhere ? `; did you mean \`${elsewhere}.${name}\`?` : ''
    return `\`${formatName(name)}\` is outside of every section${hint}`
  }
  const near = nearestName(name, [...section.sections.keys()])
  const meant = near === undefined ? sectionNamed(known, name) : formatKeyPath([...section.path, near])
  const hint = meant === undefined ? '' : `; did you mean [${meant}]?`
  return `[${formatKeyPath(path)}] is not a known section${hint}`
}
