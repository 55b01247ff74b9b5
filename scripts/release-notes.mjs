// Turns the changesets that wait in `.changeset` into the entry of a release in CHANGELOG.md, below the text that was written by hand for
// it, and into a page with every change, grouped by subject.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const UPGRADE = 'Before you upgrade'
/** How a changeset begins whose change an operator must know. */
const UPGRADE_MARK = `**${UPGRADE}.** `

/** The groups of the other changes, in the order of the entry. A change belongs to the first group that one of its packages is in. */
const GROUPS = [
  ['Running and configuration', /^(?:cli|config|daemon|runtime|backup|observability-.*)$/],
  ['Messages and channels', /^(?:delivery|channel-.*|mail-common|speech|transcription|trigger-.*|.*-channels?)$/],
  ['Agents, models, tools and procedures', /^(?:agent|approvals|sop|provider-.*|tool-.*|mcp|plugins-wasm)$/],
  ['HTTP, the dashboard and sign-in', /^(?:http|dashboard|web-push|webauthn)$/],
  ['Storage and clusters', /^(?:store|store-postgres|cluster.*)$/],
  ['Sandboxes and hardware', /^(?:sandbox-.*|hardware.*)$/],
  ['For programs that embed Sluice', /./],
]
const BUMPS = ['major', 'minor', 'patch']

/** Returns the changesets below `root`: the packages without their scope, the largest bump, and the text. */
export function readChangesets(root) {
  return globSync('.changeset/*.md', { cwd: root, exclude: ['.changeset/README.md'] })
    .toSorted()
    .map((file) => {
      const [, head, text] = /^---\n(.*?)\n---\n(.*)$/s.exec(readFileSync(join(root, file), 'utf8')) ?? []
      const named = [...(head ?? '').matchAll(/^["']@sluice\/(.+)["']: (major|minor|patch)$/gm)]
      if (named.length === 0 || !text?.trim())
        throw new Error(`${file} is not a changeset: it must name packages of Sluice and have a text`)
      const bump = BUMPS.find((each) => named.some(([, , found]) => found === each))
      return { file, packages: named.map(([, name]) => name), bump, text: text.trim() }
    })
}

const groupOf = ({ packages, text }) =>
  text.startsWith(UPGRADE_MARK) ? UPGRADE : GROUPS.find(([, pattern]) => packages.some((name) => pattern.test(name)))[0]

const bullet = ({ bump, text }) =>
  `- ${bump === 'major' ? '**Breaking:** ' : ''}${text.replace(UPGRADE_MARK, '').replaceAll('\n', '\n  ').replaceAll(/ +$/gm, '')}`

/** The page with every change of a release. */
export const changesFile = (version) => `docs/changes/${version}.md`

/** Returns the page with every change except the notes for operators who upgrade. */
export function changesPage({ version, changesets }) {
  const groups = GROUPS.flatMap(([title]) => {
    const own = changesets.filter((each) => groupOf(each) === title)
    const sorted = BUMPS.flatMap((bump) => own.filter((each) => each.bump === bump))
    return sorted.length === 0 ? [] : [`## ${title}\n\n${sorted.map(bullet).join('\n')}`]
  })
  return [`# All changes of ${version}`, 'What matters most is in [CHANGELOG.md](../../CHANGELOG.md).', ...groups].join('\n\n').concat('\n')
}

/**
 * Returns the changelog with the entry of a release, in place of the one in preparation if there is one: the text that was written by hand,
 * with what operators need to know before an upgrade, and a link to every change.
 */
export function withEntry(changelog, { version, date, changesets }) {
  const [head, ...entries] = changelog.split(/^(?=## )/m)
  const isPrepared = entries[0]?.startsWith(`## ${version} (in preparation)`)
  const written = isPrepared ? entries[0].split('\n').slice(1).join('\n').trim() : ''
  const notes = changesets.filter((each) => groupOf(each) === UPGRADE).map(bullet)
  const link = `Every change: [${changesFile(version)}](${changesFile(version)}).`
  const entry = [`## ${version}, ${date}`, withNotes(written, notes), link].filter(Boolean).join('\n\n')
  return [head.trimEnd(), entry, ...entries.slice(isPrepared ? 1 : 0).map((each) => each.trimEnd())].join('\n\n').concat('\n')
}

/** Adds notes to the section of the text for operators who upgrade, or adds that section. */
function withNotes(written, notes) {
  if (notes.length === 0) return written
  const sections = written.split(/^(?=### )/m).map((section) => section.trimEnd())
  const at = sections.findIndex((section) => section.startsWith(`### ${UPGRADE}\n`))
  if (at < 0) return [...sections, `### ${UPGRADE}\n\n${notes.join('\n')}`].filter(Boolean).join('\n\n')
  return sections.with(at, `${sections[at]}\n${notes.join('\n')}`).join('\n\n')
}

/** Returns the entry of a version as the text of its release page. With the address of the repository, its links work there. */
export function entryOf(changelog, { version, repository }) {
  const entry = changelog.split(/^(?=## )/m).find((each) => each.startsWith(`## ${version},`))
  if (entry === undefined) throw new Error(`CHANGELOG.md has no entry of ${version}`)
  const text = entry.slice(entry.indexOf('\n')).trim().concat('\n')
  if (repository === undefined) return text
  return text.replaceAll(/\]\((?![a-z]+:|#)([^)\s]+)\)/g, (_, path) => `](${repository}/blob/v${version}/${path})`)
}
