/** The providers that setup offers: the providers of this build, with the keys of the environment and the servers of this machine. */
import { signalScope } from '@sluice/kit'
import { outboundFetch } from '@sluice/runtime/outbound-fetch'
import type { OfferedModel, Provider } from '@sluice/sdk'

export interface Candidate {
  readonly kind: string
  readonly provider: Provider
  /** The variable of the environment that holds a key. */
  readonly keyVariable?: string
  /** The models of a server that runs on this machine. */
  readonly running?: readonly OfferedModel[]
}

/** A server on this machine answers within this time. */
const LOCAL_MS_MAX = 500

/** Asks all usual local addresses at the same time. The candidates with a key or a server come first. */
export async function findCandidates(
  providers: readonly Provider[],
  env: Readonly<Record<string, string | undefined>>,
  fetcher: typeof fetch = outboundFetch,
): Promise<Candidate[]> {
  const all = providers.flatMap((provider) => (provider.usual ? provider.kinds.map((kind) => ({ kind, provider })) : []))
  const found = await Promise.all(
    all.map(async ({ kind, provider }): Promise<Candidate> => {
      const { keyVariable, baseUrl } = provider.usual ?? {}
      // A key of the environment is not sent to an address that the person has typed.
      if (keyVariable) return { kind, provider, ...(baseUrl !== undefined && env[keyVariable] && { keyVariable }) }
      using limit = signalScope([], LOCAL_MS_MAX)
      const running = await provider.models?.({ kind }, { fetch: fetcher, signal: limit.signal }).catch(() => undefined)
      return { kind, provider, ...(running && { running }) }
    }),
  )
  const isReady = ({ keyVariable, running }: Candidate): boolean => keyVariable !== undefined || running !== undefined
  return [...found.filter(isReady), ...found.filter((candidate) => !isReady(candidate))]
}

/** Returns the candidate to propose: the configured one, else one with a key in the environment, else one that runs here. */
export const proposedCandidate = (candidates: readonly Candidate[], configured: string | undefined): Candidate | undefined =>
  candidates.find(({ kind }) => kind === configured) ??
  candidates.find(({ keyVariable }) => keyVariable !== undefined) ??
  candidates.find(({ running }) => running !== undefined)

/** Returns what the list of choices says of a candidate. */
export function candidateNote({ keyVariable, running, provider: { usual } }: Candidate, isConfigured: boolean): string {
  const notes = [
    ...(isConfigured ? ['in use'] : []),
    ...(keyVariable ? [`key in ${keyVariable}`] : []),
    ...(running ? [`runs at ${usual?.baseUrl} with ${running.length} ${running.length === 1 ? 'model' : 'models'}`] : []),
  ]
  return notes.join(', ')
}
