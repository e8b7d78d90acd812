/* Scores of search results. A heading that holds the whole query comes first; everything else is as in Sphinx. */
var Scorer = {
  score: ([page, title, anchor, description, score, file, kind]) => (kind === "title" ? score + 200 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
