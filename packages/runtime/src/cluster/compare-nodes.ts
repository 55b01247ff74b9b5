/** Compares what the nodes of a cluster report of the folders that they must have in common. See docs/cluster.md#what-is-shared. */
import type { ClusterNode, FolderMark, NodeFolder } from '@sluice/sdk'

/** A difference of the nodes that an operator has to repair. */
export interface NodeFinding {
  /** `failing`: nodes do wrong work because of it. */
  readonly state: 'failing' | 'warning'
  /** A sentence. */
  readonly text: string
  /** What to do, without a full stop. */
  readonly fix: string
}

/** A mark that was read may be older by so many looks than the one in the database: nodes look at different times. */
const LOOKS_LATE_MAX = 3

interface Seen {
  readonly node: string
  readonly folder: NodeFolder
}

/** Returns what differs between nodes that work and have reported, those that do wrong work first. */
export function compareNodes(nodes: readonly Pick<ClusterNode, 'node' | 'state' | 'report'>[]): NodeFinding[] {
  const working = nodes.filter(({ state }) => state === 'up' || state === 'drained')
  const seen = working.flatMap(({ node, report }) => (report?.folders ?? []).map((folder): Seen => ({ node, folder })))
  const found = [...Map.groupBy(seen, ({ folder }) => folder.name)].flatMap(([name, all]) => [
    ...all.flatMap((one) => troubled(one)),
    ...unequal(name, all),
    ...apart(name, all),
  ])
  return found.toSorted((a, b) => Number(b.state === 'failing') - Number(a.state === 'failing'))
}

function troubled({ node, folder: { name, path, problem, seen, isUsable } }: Seen): NodeFinding[] {
  if (problem === null) return []
  const folder = `its folder of ${name} (${path}): ${problem}`
  if (!isUsable) return [{ state: 'failing', text: `${node} cannot use ${folder}.`, fix: `mount the folder on ${node} again` }]
  if (seen === null) {
    const fix = 'repair that; until then, look yourself whether its files are those of the other nodes'
    return [{ state: 'warning', text: `${node} cannot compare ${folder}.`, fix }]
  }
  return [{ state: 'warning', text: `${node} cannot write to ${folder}.`, fix: 'give its user the right to write there' }]
}

/** Folders that are compared by their content. */
function unequal(name: string, all: readonly Seen[]): NodeFinding[] {
  const groups = [...Map.groupBy(all, ({ folder }) => folder.digest)].flatMap(([digest, same]) => (digest === null ? [] : [same]))
  if (groups.length < 2) return []
  const key = name === 'procedures' ? 'sop.sops_dir' : name === 'skills' ? 'skills.skills_dir' : undefined
  return [
    {
      state: 'failing',
      text: `The ${name} differ between nodes: ${groups.map(namesOf).join(' | ')}.`,
      fix: `give all nodes the same files in ${pathsOf(all)}, or mount one folder there${key === undefined ? '' : ` (${key})`}`,
    },
  ]
}

/** Folders that are compared by marks. */
function apart(name: string, all: readonly Seen[]): NodeFinding[] {
  const readable = all.filter(({ folder }) => folder.seen !== null)
  // Where no node can write a mark, nothing is known.
  if (!readable.some(({ folder }) => folder.mark)) return []
  const groups = groupsOf(readable)
  if (groups.length < 2) return []
  const lost = name === 'files' ? 'attachments and kept results that one node saves' : 'files that one node writes there'
  return [
    {
      state: 'failing',
      text: `The folder of ${name} is not the same on all nodes (${groups.map(namesOf).join(' | ')}): ${lost} are missing on others.`,
      fix: `mount one folder on all nodes as ${pathsOf(readable)}`,
    },
  ]
}

/** Puts nodes together of which one has found the mark of the other, directly or through further nodes. */
function groupsOf(all: readonly Seen[]): Seen[][] {
  let groups: Seen[][] = []
  for (const one of all) {
    const same = groups.filter((group) => group.some((other) => hasFound(one, other) || hasFound(other, one)))
    groups = [...groups.filter((group) => !same.includes(group)), [...same.flat(), one]]
  }
  return groups
}

function hasFound({ folder: { seen } }: Seen, { node, folder: { mark } }: Seen): boolean {
  const found: FolderMark | undefined = seen?.[node]
  return found !== undefined && mark !== null && found.id === mark.id && found.count >= mark.count - LOOKS_LATE_MAX
}

const namesOf = (all: readonly Seen[]): string => all.map(({ node }) => node).join(', ')

const pathsOf = (all: readonly Seen[]): string => [...new Set(all.map(({ folder }) => folder.path))].join(' and ')
