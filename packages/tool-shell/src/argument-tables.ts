/** The known arguments of version control, package managers and file tools. `known-arguments.ts` decides with them. */
import type { ArgumentRules } from './argument-rules.ts'

/** Rules for a program whose operands are paths. */
export const plain = (flags: string, long: string, valued = ''): ArgumentRules => ({ flags, valued, long, operands: 'paths' })

const DIFF =
  'abbrev[=] binary cached check color[=] diff-filter= exit-code find-renames[=] full-index function-context histogram ' +
  'ignore-all-space ignore-blank-lines ignore-space-change merge-base minimal name-only name-status no-color no-patch no-renames ' +
  'numstat patch patience quiet raw relative[=] shortstat staged stat[=] summary text unified= word-diff[=]'
const LOG: ArgumentRules = {
  flags: 'abcgimpRsuwz',
  valued: 'GLnSU',
  numbers: true,
  long:
    `${DIFF} abbrev-commit after= all author= before= branches[=] committer= date-order date= decorate[=] first-parent follow format= ` +
    'graph grep= invert-grep left-right max-count= merges no-decorate no-merges oneline pretty[=] remotes[=] reverse since= skip= ' +
    'tags[=] topo-order until= walk-reflogs',
  operands: 'paths',
}
const REMOTE: ArgumentRules = {
  flags: 'afnpqtv',
  valued: 'b',
  long:
    'all bare branch= delete depth= dry-run ff-only force force-with-lease[=] mirror no-progress no-rebase no-tags progress prune ' +
    'quiet rebase set-upstream shallow-since= single-branch tags unshallow verbose',
  operands: 'texts',
}

export const GIT: Readonly<Record<string, ArgumentRules>> = {
  add: plain('Afnuv', 'all dry-run force ignore-errors intent-to-add renormalize update verbose'),
  blame: plain('bcefflnpstw', 'abbrev= date= line-porcelain porcelain root show-email show-name show-number', 'L'),
  branch: plain(
    'aCcDdfllMmqrtv',
    'all color[=] contains[=] copy delete force format= list merged[=] move no-color no-merged[=] no-track points-at= quiet remotes ' +
      'set-upstream-to= show-current sort= track[=] unset-upstream verbose',
    'u',
  ),
  'cat-file': plain('epst', ''),
  checkout: plain('fmqt', 'detach force merge no-track orphan= ours quiet theirs track[=]', 'Bb'),
  'cherry-pick': plain('n', 'abort continue no-commit quit skip'),
  clone: REMOTE,
  commit: plain(
    'anqsv',
    'all allow-empty allow-empty-message amend author= date= dry-run fixup= message= no-edit no-verify porcelain quiet reuse-message= ' +
      'short signoff squash= verbose',
    'Cm',
  ),
  describe: plain('', 'abbrev= all always contains dirty[=] exact-match first-parent long match= tags'),
  diff: LOG,
  fetch: REMOTE,
  grep: {
    flags: 'aEFGHhIiLlnoPpqrvWwc',
    valued: 'ABCem',
    numbers: true,
    long:
      'after-context= all-match basic-regexp before-context= break cached color[=] column context= count extended-regexp ' +
      'files-with-matches files-without-match fixed-strings function-context heading ignore-case invert-match line-number max-depth= ' +
      'name-only no-color only-matching perl-regexp quiet recursive show-function text untracked word-regexp',
    operands: 'paths',
  },
  init: plain('q', 'bare initial-branch= quiet', 'b'),
  log: LOG,
  'ls-files': plain('cdikmostvz', 'cached deleted error-unmatch exclude-standard full-name ignored killed modified others stage'),
  'ls-tree': plain('dlrtz', 'abbrev[=] full-name full-tree name-only name-status'),
  merge: plain('nq', 'abort commit continue ff ff-only message= no-commit no-edit no-ff no-stat quiet quit squash stat', 'm'),
  'merge-base': plain('a', 'all fork-point independent is-ancestor octopus'),
  mv: plain('fknv', 'dry-run force verbose'),
  pull: REMOTE,
  push: { ...REMOTE, flags: `${REMOTE.flags}u` },
  rebase: plain('q', 'abort autostash continue no-autostash onto= quiet quit skip'),
  reflog: LOG,
  remote: plain('v', 'verbose'),
  reset: plain('q', 'hard keep merge mixed quiet soft'),
  restore: plain('qSW', 'ours quiet source= staged theirs worktree', 's'),
  'rev-list': LOG,
  'rev-parse': plain('q', 'abbrev-ref[=] git-dir is-inside-work-tree quiet short[=] show-prefix show-toplevel symbolic-full-name verify'),
  revert: plain('n', 'abort continue no-commit no-edit quit skip'),
  rm: plain('fnqr', 'cached dry-run force ignore-unmatch quiet'),
  shortlog: LOG,
  show: LOG,
  stash: plain('akqu', 'all include-untracked index keep-index message= quiet staged', 'm'),
  status: plain(
    'bsuvz',
    'ahead-behind branch column ignored[=] long no-ahead-behind no-column porcelain[=] short untracked-files[=] verbose',
  ),
  switch: plain('dfqt', 'create= detach discard-changes force guess no-guess no-track quiet track[=]'),
  tag: plain('dfln', 'contains[=] delete force format= list merged[=] message= points-at= sort=', 'm'),
}

const NPM_RUN = plain('s', 'all depth= if-present json long parseable silent workspace= workspaces', 'w')
export const NPM = Object.fromEntries(
  'explain info list ls outdated prefix root run run-script t test view why'.split(' ').map((name) => [name, NPM_RUN]),
)
const CARGO_RUN = plain(
  'qrv',
  'all all-features all-targets benches bin= bins example= examples features= frozen jobs= lib locked message-format= ' +
    'no-default-features no-fail-fast no-run offline package= profile= quiet release test= tests verbose workspace',
  'jp',
)
export const CARGO = Object.fromEntries(
  'b bench build c check clean clippy doc fmt metadata r run t test tree'.split(' ').map((name) => [name, CARGO_RUN]),
)
export const PIP = Object.fromEntries('check freeze list show'.split(' ').map((name) => [name, plain('', 'format= outdated uptodate')]))

export const TAR: ArgumentRules = {
  flags: 'acJjkmprStvxz',
  valued: 'Cf',
  long:
    'append auto-compress bzip2 create directory= exclude= extract file= get gunzip gzip keep-old-files list preserve-permissions ' +
    'strip-components= totals verbose xz zstd',
  operands: 'paths',
}
export const SORT = plain(
  'bCcdfghiMmnRrsuVz',
  'check[=] dictionary-order field-separator= general-numeric-sort human-numeric-sort ignore-case ignore-leading-blanks key= merge ' +
    'month-sort numeric-sort random-sort reverse stable unique version-sort zero-terminated',
  'kSt',
)
export const SPLIT = plain(
  'deux',
  'additional-suffix= bytes= elide-empty-files line-bytes= lines= number= numeric-suffixes[=] suffix-length= verbose',
  'abClnt',
)
export const AWK: ArgumentRules = { valued: 'Fv', long: 'assign= field-separator=', operands: 'texts' }
