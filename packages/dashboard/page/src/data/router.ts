/** The places of the page, kept in the fragment of its address: the page works under any path, and no place is sent to a server. */
import { signal } from '@preact/signals'
import { useParams as useWrittenParams } from 'wouter-preact'
import { useHashLocation as useWholeLocation } from 'wouter-preact/use-hash-location'

const fragment = signal(location.hash)
window.addEventListener('hashchange', () => {
  fragment.value = location.hash
})

/** The path of the place, for the router: without the part after a question mark, which has the filters of a page. */
export function useHashLocation(): [path: string, navigate: (path: string) => void] {
  const [place, navigate] = useWholeLocation()
  const path = place.split('?')[0] || '/'
  // The router decodes a path once, by which `%252F` and `%2F` would become the same: an encoded percent sign is encoded again.
  return [path.replaceAll('%25', '%2525'), navigate]
}

/** Opens a place, such as `/chat`. */
export const go = (place: string): void => {
  location.hash = `#${place}`
}

/** A link to a place, for `href`. */
export const to = (...parts: readonly (string | number)[]): string => `#/${parts.map((part) => encodeURIComponent(part)).join('/')}`

/** Returns the part of the place after its question mark. */
export const placeQuery = (): URLSearchParams => new URLSearchParams(fragment.value.split('?')[1] ?? '')

/** Changes the part of the place after its question mark, in the history of the browser too. */
export function setPlaceQuery(values: Readonly<Record<string, string | undefined>>): void {
  const [place = ''] = location.hash.split('?')
  const query = new URLSearchParams(Object.entries(values).flatMap(([name, value]) => (value ? [[name, value]] : [])))
  location.hash = query.size > 0 ? `${place}?${query}` : place
  // The event comes later: until then a page would be drawn with the values before.
  fragment.value = location.hash
}

/** Returns the parts of the place that its route names, as `to` was given them. */
export function useParams<Params extends { readonly [name: string]: string | undefined }>(): Params {
  const written = Object.entries(useWrittenParams() as Readonly<Record<string, string | undefined>>)
  return Object.fromEntries(written.map(([name, value]) => [name, value && decoded(value)])) as Params
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
