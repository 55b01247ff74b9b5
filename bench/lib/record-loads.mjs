// Preloaded into a process by `--import 'record-loads.mjs?to=FILE'`: appends the URL of every file that the process loads to FILE.
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const to = new URL(import.meta.url).searchParams.get('to')

registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) appendFileSync(to, `${url}\n`)
    return next(url, context)
  },
})
