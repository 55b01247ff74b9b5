/** Asks for the provider, its address and its key, and for the model out of the list of the endpoint. */
import type { ProviderConfig } from '@sluice/config'
import { nearestName } from '@sluice/kit'
import { AppError, howToGet, type OfferedModel, ROWS, Secret } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { type Candidate, candidateNote, proposedCandidate } from './candidates.ts'
import type { EndpointChoice } from './choice.ts'
import type { Dialogue } from './dialogue.ts'

/** The number of models that one question shows. */
const SHOWN_MAX = 20

export async function askCandidate(
  { out, features }: CliContext,
  dialogue: Dialogue,
  { candidates, configured }: { readonly candidates: readonly Candidate[]; readonly configured: string | undefined },
): Promise<Candidate> {
  for (const [index, candidate] of candidates.entries()) {
    const note = candidateNote(candidate, candidate.kind === configured)
    out.print(`${String(index + 1).padStart(3)}  ${candidate.kind}${note && `  ${out.style('green', note)}`}`)
  }
  const proposed = proposedCandidate(candidates, configured)?.kind
  for (;;) {
    const answer = await dialogue.ask('Provider, by number or name', { proposed })
    const chosen = candidates.find(({ kind }, index) => kind === answer || String(index + 1) === answer)
    if (chosen) return chosen
    out.print(`There is no provider '${answer}'${howToAdd(answer, features) ?? ''}.`)
  }
}

/** Asks for an address where the provider has none of its own, and where the configuration has one. */
export async function askBaseUrl(
  { out }: CliContext,
  dialogue: Dialogue,
  { candidate, current }: { readonly candidate: Candidate; readonly current: ProviderConfig },
): Promise<string | undefined> {
  const { kind, provider } = candidate
  const own = provider.usual?.baseUrl
  const known = current.kind === kind ? current.base_url : undefined
  for (;;) {
    const answer = await dialogue.ask('Address of the endpoint', { proposed: known ?? own })
    if (answer === own) return undefined
    if (/^https?:$/.test(URL.parse(answer)?.protocol ?? '')) return answer
    out.print(`The address must begin with http:// or https://; got '${answer}'.`)
  }
}

/** Asks for the key. Resolves to undefined for the stored key, that of the environment, or none. */
export async function askKey(
  { out }: CliContext,
  dialogue: Dialogue,
  { candidate, baseUrl, isStored }: { readonly candidate: Candidate; readonly baseUrl: string | undefined; readonly isStored: boolean },
): Promise<Secret | undefined> {
  const { keyVariable, provider } = candidate
  const usable = baseUrl === undefined ? keyVariable : undefined
  if (usable) out.print(`The key in ${usable} is used and not copied: the daemon needs this variable in its environment, too.`)
  const without = isStored
    ? 'Enter keeps the stored one'
    : usable
      ? `Enter uses ${usable}`
      : isOptional(provider.usual?.keyVariable, baseUrl)
  const answer = await dialogue.ask(`Key, which is not shown${without && ` (${without})`}`, { isHidden: true })
  return answer === '' ? undefined : new Secret(answer)
}

const isOptional = (keyVariable: string | undefined, baseUrl: string | undefined): string =>
  keyVariable === undefined || baseUrl !== undefined ? 'Enter for none' : ''

/** Asks for a model: by number, by name, or by a text that narrows the list. */
export async function askModel(
  { out }: CliContext,
  dialogue: Dialogue,
  { offered, proposed }: { readonly offered: readonly OfferedModel[]; readonly proposed: string | undefined },
): Promise<string> {
  let shown = offered
  let isNew = true
  for (;;) {
    if (isNew) printModels(out, shown)
    isNew = false
    const answer = await dialogue.ask(offered.length === 0 ? 'Model' : 'Model, by number or name, or a part of names', { proposed })
    const byNumber = /^\d+$/.test(answer) ? shown[Number(answer) - 1]?.id : undefined
    if (byNumber !== undefined) return byNumber
    if (answer === '') continue
    if (offered.length === 0 || answer === proposed || offered.some(({ id }) => id === answer)) return answer
    const matching = offered.filter(({ id }) => id.toLowerCase().includes(answer.toLowerCase()))
    isNew = matching.length > 0
    if (isNew) shown = matching
    else out.print(noModel(answer, offered))
  }
}

function printModels(out: CliContext['out'], models: readonly OfferedModel[]): void {
  for (const [index, { id, contextTokens, price }] of models.slice(0, SHOWN_MAX).entries()) {
    const notes = [contextTokens && `${contextTokens.toLocaleString('en-US')} tokens`, price && `${price.input} + ${price.output} USD`]
    out.print(`${String(index + 1).padStart(3)}  ${id}  ${out.style('dim', notes.filter(Boolean).join(', '))}`.trimEnd())
  }
  if (models.length > SHOWN_MAX) out.print(`     … and ${models.length - SHOWN_MAX} more; type a part of the name to see them.`)
}

const noModel = (answer: string, offered: readonly OfferedModel[]): string => {
  const near = nearestName(
    answer,
    offered.map(({ id }) => id),
  )
  return `The endpoint lists no model '${answer}'${near === undefined ? '' : `; did you mean ${near}?`}`
}

/** Returns the model to propose: the configured one, that of the provider, or the only one, as the endpoint names it. */
export function proposedModel(
  { kind, provider }: Pick<EndpointChoice, 'kind' | 'provider'>,
  current: ProviderConfig,
  offered: readonly OfferedModel[] | undefined,
): string | undefined {
  const wanted = [current.kind === kind ? current.model : undefined, provider.usual?.model].filter((name) => name !== undefined)
  if (!offered?.length) return wanted[0]
  const listed = wanted.find((name) => offered.some(({ id }) => id === name || id === `${name}:latest`))
  return listed ?? (offered.length === 1 ? offered[0]?.id : undefined)
}

/** Refuses a kind that this build does not have. */
export function findCandidate({ features }: CliContext, candidates: readonly Candidate[], kind: string): Candidate {
  const found = candidates.find((candidate) => candidate.kind === kind)
  if (found) return found
  const kinds = candidates.map((candidate) => candidate.kind)
  const near = nearestName(kind, kinds)
  const cure = howToAdd(kind, features) ?? (near === undefined ? '' : `; did you mean '${near}'?`)
  throw new AppError(
    'invalid_request',
    `There is no provider '${kind}'${cure}${cure.endsWith('?') ? '' : '.'} This build has: ${kinds.join(', ')}`,
  )
}

/** Returns how to add the feature with a kind of provider that this build leaves out. */
function howToAdd(kind: string, features: CliContext['features']): string | undefined {
  const id = ROWS.find(([, row]) => row.kinds?.includes(kind))?.[0]
  return id === undefined || features.some((feature) => feature.id === id) ? undefined : ` in this build; to add it, ${howToGet(id)}`
}
