/** The page and its files. The build puts them into the folder `dashboard` next to the module that has this code. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineRoute, type Route } from '@sluice/sdk'
import { StaticFiles } from './static-files.ts'

/** Next to the module in a bundle and in the published package; in the build of the package, seen from the sources. */
const PLACES = ['./dashboard/', '../dist/dashboard/']

function builtFolder(): string {
  const places = PLACES.map((place) => fileURLToPath(new URL(place, import.meta.url)))
  return places.find((place) => existsSync(place)) ?? places[0] ?? ''
}

/** The folder is looked for at the first request, and again until it is there. */
export function pageRoutes(folder: () => string = builtFolder): Route[] {
  let kept: StaticFiles | undefined
  const files = (): StaticFiles => {
    if (kept) return kept
    const found = folder()
    const made = new StaticFiles(found)
    if (existsSync(found)) kept = made
    return made
  }
  return [
    defineRoute({
      method: 'GET',
      path: '/',
      summary: 'Show the dashboard',
      auth: 'open',
      mediaType: 'text/html',
      answers: { 200: { description: 'The page' } },
      handle: ({ headers }) => files().page(headers),
    }),
    defineRoute({
      method: 'GET',
      path: '/assets/:file',
      summary: 'A file of the dashboard',
      auth: 'open',
      mediaType: 'application/octet-stream',
      answers: { 200: { description: 'The file' } },
      handle: ({ headers, params: { file = '' } }) => files().asset(file, headers),
    }),
  ]
}
