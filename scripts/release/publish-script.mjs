// Makes the script that publishes the files of a release. The owner of the names only signs in.
import { basename } from 'node:path'

export const PUBLISH_SCRIPT = 'publish.sh'

/** Returns the address of the page of a repository, such as `https://github.com/owner/name`; undefined when it is not on the web. */
export function webAddress(repository) {
  const text = typeof repository === 'string' ? repository : repository?.url
  const [, address] = /^(?:git\+)?(https:\/\/[^\s'"]+?)(?:\.git)?$/.exec(text ?? '') ?? []
  return address
}

/** Publishes the packages, in CI with a proof of their origin, for which the manifests name their repository. */
const npmLines = ({ packages, version, repository }) => [
  "# Sign in with 'npm login', or set NODE_AUTH_TOKEN in CI.",
  'proof=',
  ...(repository ? ['if printenv CI >/dev/null; then proof=--provenance; fi'] : []),
  'publish() {',
  `  npm view "$1@${version}" version >/dev/null 2>&1 || npm publish "$2" --access public $proof`,
  '}',
  'publish_npm() {',
  '  (cd npm && sha256sum --check --strict --quiet SHA256SUMS)',
  ...packages.map(({ name, file }) => `  publish ${name} ./npm/${basename(file)}`),
  `  publish sluice ./sluice-${version}.tgz`,
  '}',
]

const imageLines = ({ image, version }) => [
  `# Sign in with 'skopeo login <registry>'. IMAGE is the name of the image, such as ghcr.io/owner/sluice.`,
  'publish_image() {',
  ...(image === undefined
    ? ["  echo 'publish: this release has no image, because --base was missing' >&2", '  return 1']
    : [
        `  : "\${IMAGE:?set IMAGE to the name of the image, such as ghcr.io/owner/sluice}"`,
        `  skopeo copy --all --preserve-digests "oci:image:${version}" "docker://$IMAGE:${version}"`,
        `  echo "published $IMAGE@${image.digest}"`,
      ]),
  '}',
]

const pageLines = ({ files, version, repository }) => [
  '# Sign in with `gh auth login`.',
  'publish_page() {',
  ...(repository?.startsWith('https://github.com/')
    ? [
        `  gh release create v${version} --repo ${repository} --verify-tag --title 'Sluice ${version}' --notes-file release-notes.md ${files.join(' ')}`,
      ]
    : [
        `  echo 'publish: make a page for v${version} with the text of release-notes.md, and these files: ${files.join(' ')}' >&2`,
        '  return 1',
      ]),
  '}',
]

/**
 * Returns the script. `packages` are `{ name, file }` in their order, `files` the names of the files of the page, `image` the image with its
 * digest if there is one, and `repository` the address of the repository on the web if it is known.
 */
export const publishScript = (release) =>
  [
    '#!/bin/sh',
    `# Publishes Sluice ${release.version} from this folder: ./${PUBLISH_SCRIPT} npm, image or page. A step that was interrupted can be repeated.`,
    'set -eu',
    'cd "$(dirname "$0")"',
    ...npmLines(release),
    ...imageLines(release),
    ...pageLines(release),
    'case "$*" in',
    '  npm | image | page)',
    '    sha256sum --check --strict --quiet SHA256SUMS',
    '    "publish_$1"',
    '    ;;',
    `  *) echo 'usage: ./${PUBLISH_SCRIPT} npm|image|page' >&2 && exit 2 ;;`,
    'esac',
  ]
    .join('\n')
    .concat('\n')
