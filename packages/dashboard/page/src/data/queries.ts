/** The data layer: the answers that the page has loaded, and the ones that an event makes stale. */
import { QueryClient, type QueryKey, useQuery } from '@tanstack/preact-query'
import { ApiError, type GetPath, type Got, get, getOverview, type Overview, type PathOf, type QueryOf } from './api.ts'

const RETRIES_MAX = 2
/** Data without an event of its own is requested again after this time, while the page shows it. */
export const REFRESH_MS = 15_000

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5000,
      gcTime: 60_000,
      // The connection to the events tells when the gateway can be reached; the browser's own opinion does not concern this machine.
      networkMode: 'always',
      retry: (count, error) => !(error instanceof ApiError && error.status >= 400 && error.status < 500) && count < RETRIES_MAX,
      refetchOnWindowFocus: true,
    },
    mutations: { networkMode: 'always' },
  },
})

interface Options {
  readonly enabled?: boolean
  readonly refreshMs?: number | false
}

/** The answer of a `GET`, kept fresh while it is shown. The key begins with the path, by which events name what is stale. */
export function useApi<Path extends GetPath>(
  path: Path,
  params: PathOf<Path> & QueryOf<Path>,
  { enabled = true, refreshMs = false }: Options = {},
) {
  return useQuery<Got<Path>, Error>({
    queryKey: [path, params] as QueryKey,
    queryFn: ({ signal }) => get(path, params, signal),
    enabled,
    refetchInterval: refreshMs,
    placeholderData: (before) => before,
  })
}

/** Loads again everything whose path begins with one of these. */
export const refresh = (...prefixes: readonly string[]): Promise<void> =>
  queries.invalidateQueries({
    predicate: ({ queryKey: [path] }) => typeof path === 'string' && prefixes.some((prefix) => path.startsWith(prefix)),
  })

export const OVERVIEW = ['/api/overview'] as const

/** The data of the overview; the frame of the page shows its counts. */
export const useOverview = (enabled = true) =>
  useQuery<Overview, Error>({ queryKey: OVERVIEW, queryFn: ({ signal }) => getOverview(signal), refetchInterval: REFRESH_MS, enabled })
