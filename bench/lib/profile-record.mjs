// The recorded profile of the ingress, which `bench/profile.mjs` writes and docs/performance.md shows.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = join(import.meta.dirname, '..', 'profile.json')
const DIGITS = 3

const rounded = (_, value) => (typeof value === 'number' ? Number(value.toPrecision(DIGITS)) : value)

export const readProfile = () => (existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : undefined)

export const writeProfile = (profile) => writeFileSync(FILE, `${JSON.stringify(profile, rounded, 2)}\n`)
